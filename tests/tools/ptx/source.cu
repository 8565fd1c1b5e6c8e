// Handed to `ptarmigan run` by mistake.
__global__ void nothing() {}
