// SPDX-License-Identifier: Apache-2.0
// Kernels whose threads part, written once for CUDA C++ and OpenCL C. kernels.cu and kernels.cl define the words below
// and include this file.

// Iterations until a point leaves the circle: neighbours part when one has left.
KERNEL mandelbrot(GLOBAL int* out, int width, int height, int limit) {
    int px = GLOBAL_X, py = GLOBAL_Y;
    if (px >= width || py >= height) return;
    float cx = -2.0f + 3.0f * px / width, cy = -1.5f + 3.0f * py / height;
    float x = 0.0f, y = 0.0f;
    int i = 0;
    while (i < limit && FMA(x, x, y * y) < 4.0f) {
        float t = FMA(x, x, FMA(-y, y, cx));
        y = FMA(2.0f * x, y, cy);
        x = t;
        ++i;
    }
    out[py * width + px] = i;
}

// One level of a breadth-first search: vertices of this level name their neighbours' level. All writers of a word write
// the same.
KERNEL bfs_level(GLOBAL const int* first, GLOBAL const int* neighbours, GLOBAL const int* levels, GLOBAL int* next,
                 int count, int level) {
    int v = GLOBAL_X;
    if (v >= count || levels[v] != level) return;
    for (int e = first[v]; e < first[v + 1]; ++e) {
        int n = neighbours[e];
        if (levels[n] < 0) next[n] = level + 1;
    }
}

// y = A x, a row of 0 to 80 elements per thread.
KERNEL spmv(GLOBAL const int* first, GLOBAL const int* columns, GLOBAL const float* values, GLOBAL const float* x,
            GLOBAL float* y, int count) {
    int row = GLOBAL_X;
    if (row >= count) return;
    float sum = 0.0f;
    for (int e = first[row]; e < first[row + 1]; ++e) sum = FMA(values[e], x[columns[e]], sum);
    y[row] = sum;
}

// Steps of a ray through a grid of cells until one is solid or the ray leaves; from the middle, one ray per pixel.
KERNEL cast_rays(GLOBAL const int* solid, GLOBAL int* steps, int size, int rays) {
    int ray = GLOBAL_X;
    if (ray >= rays) return;
    float dx = 1.0f - 2.0f * ((ray * 37) & 1023) / 1023.0f, dy = 1.0f - 2.0f * ((ray * 101) & 1023) / 1023.0f;
    if (dx == 0.0f) dx = 0.001f;
    if (dy == 0.0f) dy = 0.001f;
    int cx = size / 2 + (ray & 31), cy = size / 2 + (ray >> 5 & 31);
    int step_x = dx > 0.0f ? 1 : -1, step_y = dy > 0.0f ? 1 : -1;
    float wide_x = ABS(1.0f / dx), wide_y = ABS(1.0f / dy), at_x = 0.5f * wide_x, at_y = 0.5f * wide_y;
    int count = 0;
    while (cx >= 0 && cy >= 0 && cx < size && cy < size && solid[cy * size + cx] == 0) {
        if (at_x < at_y) {
            at_x += wide_x;
            cx += step_x;
        } else {
            at_y += wide_y;
            cy += step_y;
        }
        ++count;
    }
    steps[ray] = count;
}

// Where a pattern begins in 64 bytes of text per thread: the inner loop ends at the first byte that differs.
KERNEL match_string(GLOBAL const unsigned char* text, GLOBAL const unsigned char* pattern, GLOBAL int* found, int count,
                    int length) {
    int i = GLOBAL_X;
    if (i >= count) return;
    int matches = 0;
    for (int start = i * 64; start < i * 64 + 64; ++start) {
        int k = 0;
        while (k < length && text[start + k] == pattern[k]) ++k;
        matches += k == length;
    }
    found[i] = matches;
}

// One path for each pixel.
KERNEL trace_paths(GLOBAL const float* shapes, GLOBAL float* picture, int count, int size) {
    int px = GLOBAL_X, py = GLOBAL_Y;
    if (px >= size || py >= size) return;
    picture[py * size + px] = trace_path(shapes, count, px, py, size);
}
