// Blocked Floyd-Warshall, round p of n / TILE: the pivot tile (p, p), the tiles of its row and column, then all others.
// A block of TILE x TILE threads has one tile, and each thread one cell of it.

// the number of a tile in a row, where tile p is left out
__device__ int skip_pivot(int number, int p)
{
    return number < p ? number : number + 1;
}

template <typename T>
__global__ void pivot(T *distance, int n, int p)
{
    __shared__ T own[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    T *cell = distance + (p * TILE + y) * n + p * TILE + x;
    own[y][x] = *cell;
    __syncthreads();
    for (int k = 0; k < TILE; k++) {
        // row k and column k do not change in step k
        T via = own[y][k] + own[k][x];
        if (via < own[y][x])
            own[y][x] = via;
        __syncthreads();
    }
    *cell = own[y][x];
}

template <typename T>
__global__ void panels(T *distance, int n, int p)
{
    __shared__ T own[TILE][TILE], middle[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, other = skip_pivot(blockIdx.x, p);
    bool in_row = blockIdx.y == 0;
    int top = in_row ? p : other, left = in_row ? other : p;
    T *cell = distance + (top * TILE + y) * n + left * TILE + x;
    own[y][x] = *cell;
    middle[y][x] = distance[(p * TILE + y) * n + p * TILE + x];
    __syncthreads();
    for (int k = 0; k < TILE; k++) {
        T via = in_row ? middle[y][k] + own[k][x] : own[y][k] + middle[k][x];
        if (via < own[y][x])
            own[y][x] = via;
        __syncthreads();
    }
    *cell = own[y][x];
}

template <typename T>
__global__ void rest(T *distance, int n, int p)
{
    __shared__ T to[TILE][TILE], from[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int i = skip_pivot(blockIdx.y, p) * TILE + y, j = skip_pivot(blockIdx.x, p) * TILE + x;
    to[y][x] = distance[i * n + p * TILE + x];
    from[y][x] = distance[(p * TILE + y) * n + j];
    __syncthreads();
    T own = distance[i * n + j];
    for (int k = 0; k < TILE; k++)
        own = min(own, T(to[y][k] + from[k][x]));
    distance[i * n + j] = own;
}
