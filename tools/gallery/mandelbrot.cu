// SPDX-License-Identifier: Apache-2.0
// The picture of tools/demo: the Mandelbrot set, four samples a pixel, smooth colours. mandelbrot.ptx is what
// `nvcc -ptx -o mandelbrot.ptx mandelbrot.cu` makes of it.

__device__ float3 palette(float t) {
    return make_float3(0.5f + 0.5f * __cosf(6.2831853f * (t + 0.60f)), 0.5f + 0.5f * __cosf(6.2831853f * (t + 0.72f)),
                       0.5f + 0.5f * __cosf(6.2831853f * (t + 0.86f)));
}

// `counts` gets the iterations of each pixel's first sample, for the host to check.
extern "C" __global__ void render(uchar4* pixels, int* counts, int width, int height, float centre_x, float centre_y,
                                  float scale, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float3 sum = make_float3(0, 0, 0);
    for (int sample = 0; sample < 4; ++sample) {
        float px = __fadd_rn(x, 0.5f * (sample & 1)), py = __fadd_rn(y, 0.5f * (sample >> 1));
        float re = __fadd_rn(centre_x, __fmul_rn(px - 0.5f * width, scale));
        float im = __fadd_rn(centre_y, __fmul_rn(py - 0.5f * height, scale));
        float zr = 0, zi = 0, rr = 0, ii = 0;
        int count = 0;
        while (count < limit && rr + ii <= 256.0f) {
            zi = __fadd_rn(__fmul_rn(2.0f * zr, zi), im);
            zr = __fadd_rn(__fsub_rn(rr, ii), re);
            rr = __fmul_rn(zr, zr);
            ii = __fmul_rn(zi, zi);
            ++count;
        }
        if (sample == 0)
            counts[y * width + x] = count;
        if (count < limit) {
            float smooth = count + 1 - __log2f(0.5f * __log2f(rr + ii));
            float3 colour = palette(0.18f * __log2f(smooth + 1.0f));
            sum.x += colour.x, sum.y += colour.y, sum.z += colour.z;
        }
    }
    pixels[y * width + x] = make_uchar4(static_cast<unsigned char>(63.75f * sum.x), static_cast<unsigned char>(63.75f * sum.y),
                                        static_cast<unsigned char>(63.75f * sum.z), 255);
}
