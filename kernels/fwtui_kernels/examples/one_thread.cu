// Each thread relaxes one pair: distance[i][j] = min(distance[i][j], distance[i][k] + distance[k][j]).
// T is float, int or short. Every function gets its buffers, then n (a row's length in memory), then the integers of its step.

template <typename T>
__global__ void relax(T *distance, int n, int k)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;  // neighbouring threads: neighbouring columns
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n)
        distance[i * n + j] = min(distance[i * n + j], T(distance[i * n + k] + distance[k * n + j]));
}
