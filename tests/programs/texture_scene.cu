// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces of every shape: a filtered zoom into an image, written to a surface, then reads of a line, layers,
// a volume, a cube, levels, pitched and linear memory. Coordinates are multiples of 1/256 texel and texels small integers, so
// that all results are exact.
#include "common/program.h"

struct Scene {
    unsigned long long image, canvas, line, layers, volume, cube, levels, pitched, bytes;
};

KERNEL void zoom(Scene scene, int width, int height, int step);
KERNEL void collect(Scene scene, float* results, int count);

#ifdef __CUDACC__
__global__ void zoom(Scene scene, int width, int height, int step) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float4 texel = tex2D<float4>(scene.image, (x * step + 37) / 256.0f, (y * step + 11) / 256.0f);
    surf2Dwrite(texel, scene.canvas, x * int(sizeof(float4)), y);
}

__global__ void collect(Scene scene, float* results, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float* to = results + 9 * i;
    const float4 canvas = surf2Dread<float4>(scene.canvas, i % 40 * int(sizeof(float4)), i % 30);
    to[0] = canvas.x + canvas.w;
    to[1] = tex1D<float>(scene.line, (i % 64 + 0.5f) / 64);
    to[2] = tex2DLayered<float>(scene.layers, i % 8 + 0.5f, i / 8 % 4 + 0.5f, i % 3);
    to[3] = tex3D<float>(scene.volume, i % 5 + 1.0f, i % 4 + 0.5f, i % 3 + 0.5f);
    to[4] = texCubemap<float>(scene.cube, i % 3 == 0 ? 1 : 0.25f, i % 3 == 1 ? -1 : 0.25f, i % 3 == 2 ? 1 : -0.25f);
    to[5] = tex2DLod<float>(scene.levels, 0.5f, 0.5f, float(i % 4));
    to[6] = tex2D<unsigned char>(scene.pitched, float(i % 20), float(i % 7));
    to[7] = tex1Dfetch<uchar4>(scene.bytes, i % 100).y;
    const float4 corner = tex2Dgather<float4>(scene.image, i % 16 + 1.0f, i % 12 + 1.0f, 1);
    to[8] = corner.x - corner.z;
}
#endif

#include "common/textures.h"

namespace {

constexpr int width = 40, height = 30, step = 96, count = 1000;

float image_texel(int x, int y, int channel) { return float((x * 7 + y * 13 + channel * 5) % 64); }

int clamped(int value, int size) { return value < 0 ? 0 : value >= size ? size - 1 : value; }

/// Bilinear in 256ths: weights of the corners as the hardware rounds them.
float filtered(int u, int v, int channel) {
    const int fx = (u - 128) & 255, fy = (v - 128) & 255, x = (u - 128) >> 8, y = (v - 128) >> 8;
    const int both = (fx * fy + 128) >> 8, weights[4] = {256 - fx - fy + both, fx - both, fy - both, both};
    int sum = 0;
    for (int corner = 0; corner < 4; ++corner)
        sum += weights[corner] * int(image_texel(clamped(x + (corner & 1), 32), clamped(y + (corner >> 1), 24), channel));
    return float(sum) / 256;
}

float expected(int i, int what) {
    switch (what) {
    case 0: {
        const int u = i % width * step + 37, v = i % height * step + 11;
        return filtered(u, v, 0) + filtered(u, v, 3);
    }
    case 1: return float(i % 64 * 3);
    case 2: return float(i % 8 + 10 * (i / 8 % 4) + 100 * (i % 3));
    case 3: return (float(i % 5) + float(clamped(i % 5 + 1, 5))) / 2 + 10.0f * float(i % 4) + 100.0f * float(i % 3);
    case 4: return i % 3 == 0 ? 0.0f : i % 3 == 1 ? 3.0f : 4.0f;
    case 5: return float(i % 4 * 16);
    case 6: return float((i % 20 + i % 7 * 31) % 256);
    case 7: return float((i % 100 * 4 + 1) % 256);
    default: {
        const int x = i % 16, y = i % 12;
        return image_texel(x, y + 1, 1) - image_texel(x + 1, y, 1);
    }
    }
}

} // namespace

int main(int argc, char** argv) {
    const test::Program program("texture_scene", argc, argv);
    std::vector<float> image, line, layers, volume, cube;
    for (int y = 0; y < 24; ++y)
        for (int x = 0; x < 32; ++x)
            for (int channel = 0; channel < 4; ++channel) image.push_back(image_texel(x, y, channel));
    for (int x = 0; x < 64; ++x) line.push_back(float(3 * x));
    for (int z = 0; z < 3; ++z)
        for (int y = 0; y < 4; ++y)
            for (int x = 0; x < 8; ++x) layers.push_back(float(x + 10 * y + 100 * z));
    for (int z = 0; z < 3; ++z)
        for (int y = 0; y < 4; ++y)
            for (int x = 0; x < 5; ++x) volume.push_back(float(x + 10 * y + 100 * z));
    for (int face = 0; face < 6; ++face)
        for (int texel = 0; texel < 16; ++texel) cube.push_back(float(face));
    std::vector<std::vector<float>> levels;
    for (int level = 0; level < 4; ++level) levels.emplace_back((8 >> level) * (8 >> level), float(16 * level));
    std::vector<unsigned char> plane(512 * 7), bytes(400);
    for (int i = 0; i < 512 * 7; ++i) plane[i] = static_cast<unsigned char>(i % 512 + i / 512 * 31);
    for (int i = 0; i < 400; ++i) bytes[i] = static_cast<unsigned char>(i);

    using namespace test;
    const Array image_array({32, 24, 0, 4, array_gather}, image.data()), canvas({width, height, 0, 4, array_surface}, nullptr);
    const Array line_array({64, 0, 0, 1, 0}, line.data()), layer_array({8, 4, 3, 1, array_layered}, layers.data());
    const Array volume_array({5, 4, 3, 1, 0}, volume.data()), cube_array({4, 4, 6, 1, array_cube}, cube.data());
    const Mipmap mipmap(8, levels);
    const Buffer<unsigned char> plane_memory(plane), byte_memory(bytes);
    const Texture image_texture(image_array, filter_linear, 0), line_texture(line_array, filter_point, normalized);
    const Texture layer_texture(layer_array, filter_point, 0), volume_texture(volume_array, filter_linear, 0);
    const Texture cube_texture(cube_array, filter_point, normalized), level_texture(mipmap);
    const Texture pitched(plane_memory, 20, 7, 512), linear(byte_memory, 400);
    const Surface surface(canvas);
    const Scene scene{image_texture, surface, line_texture, layer_texture, volume_texture, cube_texture, level_texture, pitched, linear};

    LAUNCH(zoom, dim3(blocks_for(width, 16), blocks_for(height, 8)), dim3(16, 8), 0, scene, width, height, step);
    const Buffer<float> results(9 * count);
    LAUNCH(collect, dim3(blocks_for(count, 128)), dim3(128), 0, scene, results, count);
    const std::vector<float> actual = results.download();
    int wrong = 0;
    for (int i = 0; i < count; ++i)
        for (int what = 0; what < 9; ++what) {
            if (actual[9 * i + what] == expected(i, what)) continue;
            if (++wrong <= 8) std::printf("thread %d, result %d: %g instead of %g\n", i, what, actual[9 * i + what], expected(i, what));
        }
    return program.finish(wrong == 0, "results=%d wrong=%d", 9 * count, wrong);
}
