// Blocked Floyd-Warshall in tiles of TILE x TILE cells, with SIDE x SIDE threads that have 4 x 4 cells each.
// Thread (x, y) has the cells of columns x, x + SIDE, ... and rows y, y + SIDE, ...: neighbouring threads, neighbouring cells.

const int SIDE = TILE / 4;

// the number of a tile in a row, where tile p is left out
__device__ int skip_pivot(int number, int p)
{
    return number < p ? number : number + 1;
}

template <typename T>
__device__ void load(T (*to)[TILE], const T *distance, int n, int top, int left)
{
    for (int y = threadIdx.y; y < TILE; y += SIDE)
        for (int x = threadIdx.x; x < TILE; x += SIDE)
            to[y][x] = distance[(top * TILE + y) * n + left * TILE + x];
}

template <typename T>
__device__ void store(T *distance, int n, int top, int left, T (*from)[TILE])
{
    for (int y = threadIdx.y; y < TILE; y += SIDE)
        for (int x = threadIdx.x; x < TILE; x += SIDE)
            distance[(top * TILE + y) * n + left * TILE + x] = from[y][x];
}

// own = min(own, a x b) where own is one of the two, or both
template <typename T>
__device__ void relax_in_order(T (*own)[TILE], T (*a)[TILE], T (*b)[TILE])
{
    for (int k = 0; k < TILE; k++) {
        __syncthreads();
        for (int y = threadIdx.y; y < TILE; y += SIDE)
            for (int x = threadIdx.x; x < TILE; x += SIDE) {
                T via = a[y][k] + b[k][x];
                if (via < own[y][x])  // row k and column k do not change in step k
                    own[y][x] = via;
            }
    }
}

template <typename T>
__global__ void pivot(T *distance, int n, int p)
{
    __shared__ T own[TILE][TILE];
    load(own, distance, n, p, p);
    relax_in_order(own, own, own);
    store(distance, n, p, p, own);
}

template <typename T>
__global__ void panels(T *distance, int n, int p)
{
    __shared__ T own[TILE][TILE], middle[TILE][TILE];
    int other = skip_pivot(blockIdx.x, p);
    bool in_row = blockIdx.y == 0;
    int top = in_row ? p : other, left = in_row ? other : p;
    load(own, distance, n, top, left);
    load(middle, distance, n, p, p);
    if (in_row)
        relax_in_order(own, middle, own);
    else
        relax_in_order(own, own, middle);
    store(distance, n, top, left, own);
}

template <typename T>
__global__ void rest(T *distance, int n, int p)
{
    __shared__ T to[TILE][TILE], from[TILE][TILE];
    int top = skip_pivot(blockIdx.y, p), left = skip_pivot(blockIdx.x, p);
    load(to, distance, n, top, p);
    load(from, distance, n, p, left);
    T *corner = distance + (top * TILE + threadIdx.y) * n + left * TILE + threadIdx.x;
    T own[4][4];
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            own[a][b] = corner[a * SIDE * n + b * SIDE];
    __syncthreads();
    #pragma unroll  // so that four values of k are read from a row of `to` at once
    for (int k = 0; k < TILE; k++) {
        T row[4], column[4];  // each is read once for four results
        for (int a = 0; a < 4; a++) {
            column[a] = to[threadIdx.y + a * SIDE][k];
            row[a] = from[k][threadIdx.x + a * SIDE];
        }
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < 4; b++)
                own[a][b] = min(own[a][b], T(column[a] + row[b]));
    }
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            corner[a * SIDE * n + b * SIDE] = own[a][b];
}
