// SPDX-License-Identifier: Apache-2.0
// The benchmark kernels, written once for CUDA C++ and OpenCL C so that both get the same work.
// kernels.cu and kernels.cl define the words below and include this file.

KERNEL saxpy(GLOBAL const float* x, GLOBAL float* y, float a, int n) {
    int i = GLOBAL_X;
    if (i < n) y[i] = a * x[i] + y[i];
}

// C = A * B, n x n, one element per thread, 16 x 16 tiles in shared memory.
KERNEL sgemm_tiled(GLOBAL const float* A, GLOBAL const float* B, GLOBAL float* C, int n) {
    SHARED float a[16][16];
    SHARED float b[16][16];
    int tx = LOCAL_X, ty = LOCAL_Y;
    int row = GROUP_Y * 16 + ty, col = GROUP_X * 16 + tx;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        a[ty][tx] = A[row * n + k + tx];
        b[ty][tx] = B[(k + ty) * n + col];
        BARRIER;
        for (int i = 0; i < 16; ++i) sum = FMA(a[ty][i], b[i][tx], sum);
        BARRIER;
    }
    C[row * n + col] = sum;
}

// 64 x 64 tile per group of 16 x 16 threads, 4 x 4 elements per thread.
KERNEL sgemm_register_tiled(GLOBAL const float* A, GLOBAL const float* B, GLOBAL float* C, int n) {
    SHARED float a[16][64];
    SHARED float b[16][64];
    int tx = LOCAL_X, ty = LOCAL_Y, t = ty * 16 + tx;
    int row = GROUP_Y * 64, col = GROUP_X * 64;
    float sum[4][4];
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] = 0.0f;
    for (int k = 0; k < n; k += 16) {
        for (int i = 0; i < 4; ++i) {
            int e = t + i * 256;
            a[e % 16][e / 16] = A[(row + e / 16) * n + k + e % 16];
            b[e / 64][e % 64] = B[(k + e / 64) * n + col + e % 64];
        }
        BARRIER;
        for (int p = 0; p < 16; ++p) {
            float x[4], y[4];
            for (int i = 0; i < 4; ++i) {
                x[i] = a[p][ty + 16 * i];
                y[i] = b[p][tx + 16 * i];
            }
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] = FMA(x[i], y[j], sum[i][j]);
        }
        BARRIER;
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) C[(row + ty + 16 * i) * n + col + tx + 16 * j] = sum[i][j];
}

// Five-point stencil over the inside of a w x h grid.
KERNEL stencil(GLOBAL const float* in, GLOBAL float* out, int w, int h) {
    int x = GLOBAL_X, y = GLOBAL_Y;
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1) {
        int i = y * w + x;
        out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
    }
}

// 256 bins, one shared copy per group, grid-stride loop.
KERNEL histogram(GLOBAL const unsigned int* data, GLOBAL unsigned int* bins, int n) {
    SHARED unsigned int local_bins[256];
    local_bins[LOCAL_X] = 0;
    BARRIER;
    for (int i = GLOBAL_X; i < n; i += GLOBAL_SIZE_X) ATOMIC_ADD_SHARED(&local_bins[data[i] & 255u], 1u);
    BARRIER;
    ATOMIC_ADD_GLOBAL(&bins[LOCAL_X], local_bins[LOCAL_X]);
}

KERNEL mandelbrot(GLOBAL int* out, int w, int h, int limit) {
    int px = GLOBAL_X, py = GLOBAL_Y;
    if (px >= w || py >= h) return;
    float cx = -2.0f + 3.0f * px / w, cy = -1.5f + 3.0f * py / h;
    float x = 0.0f, y = 0.0f;
    int i = 0;
    while (i < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        ++i;
    }
    out[py * w + px] = i;
}

// Positions and masses as x, y, z, m; accelerations out. All pairs, tiles of 256 bodies in shared memory.
KERNEL nbody(GLOBAL const float* p, GLOBAL float* acc, int n) {
    SHARED float tile[256 * 4];
    int i = GLOBAL_X, t = LOCAL_X;
    float px = p[4 * i], py = p[4 * i + 1], pz = p[4 * i + 2];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int base = 0; base < n; base += 256) {
        for (int c = 0; c < 4; ++c) tile[t + 256 * c] = p[4 * base + t + 256 * c];
        BARRIER;
        for (int j = 0; j < 256; ++j) {
            float dx = tile[4 * j] - px, dy = tile[4 * j + 1] - py, dz = tile[4 * j + 2] - pz;
            float d = FMA(dx, dx, FMA(dy, dy, FMA(dz, dz, 1e-3f)));
            float inv = RSQRT(d);
            float s = tile[4 * j + 3] * inv * inv * inv;
            ax = FMA(dx, s, ax);
            ay = FMA(dy, s, ay);
            az = FMA(dz, s, az);
        }
        BARRIER;
    }
    acc[4 * i] = ax;
    acc[4 * i + 1] = ay;
    acc[4 * i + 2] = az;
    acc[4 * i + 3] = 0.0f;
}

DEVICE float cumulative_normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * ABS(d));
    float c = 0.39894228040143267794f * EXP(-0.5f * d * d) *
              (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - c : c;
}

KERNEL black_scholes(GLOBAL const float* price, GLOBAL const float* strike, GLOBAL const float* years,
                     GLOBAL float* call, GLOBAL float* put, float rate, float volatility, int n) {
    int i = GLOBAL_X;
    if (i >= n) return;
    float s = price[i], x = strike[i], t = years[i];
    float root = SQRT(t);
    float d1 = (LOG(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = cumulative_normal(d1), n2 = cumulative_normal(d2);
    float discount = x * EXP(-rate * t);
    call[i] = s * n1 - discount * n2;
    put[i] = discount * (1.0f - n2) - s * (1.0f - n1);
}

// 32 x 32 tiles, 32 x 8 threads.
KERNEL transpose(GLOBAL const float* in, GLOBAL float* out, int w, int h) {
    SHARED float tile[32][33];
    int x = GROUP_X * 32 + LOCAL_X, y = GROUP_Y * 32 + LOCAL_Y;
    for (int j = 0; j < 32; j += 8) tile[LOCAL_Y + j][LOCAL_X] = in[(y + j) * w + x];
    BARRIER;
    x = GROUP_Y * 32 + LOCAL_X;
    y = GROUP_X * 32 + LOCAL_Y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * h + x] = tile[LOCAL_X][LOCAL_Y + j];
}

// y = A x, one thread per row of a matrix in compressed sparse row form.
KERNEL spmv(GLOBAL const int* rows, GLOBAL const int* columns, GLOBAL const float* values, GLOBAL const float* x,
            GLOBAL float* y, int n) {
    int i = GLOBAL_X;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = rows[i]; j < rows[i + 1]; ++j) sum = FMA(values[j], x[columns[j]], sum);
    y[i] = sum;
}

// z = x + y as libraries write it: any strides, all of them parameters; grid-stride loop.
KERNEL add_strided(GLOBAL const float* x, int incx, GLOBAL const float* y, int incy, GLOBAL float* z, int incz, int n) {
    for (int i = GLOBAL_X; i < n; i += GLOBAL_SIZE_X) z[i * incz] = x[i * incx] + y[i * incy];
}

// The same of matrices, in one index: a quotient and a remainder of it, times strides.
KERNEL add_matrices(GLOBAL const float* x, int row_x, int column_x, GLOBAL const float* y, int row_y, int column_y,
                    GLOBAL float* z, int row_z, int column_z, int columns, int n) {
    for (int i = GLOBAL_X; i < n; i += GLOBAL_SIZE_X) {
        int row = i / columns, column = i - row * columns;
        z[row * row_z + column * column_z] = x[row * row_x + column * column_x] + y[row * row_y + column * column_y];
    }
}

// y = A * x, a row of A for each thread (PolyBench's ATAX, GESUMMV and others).
KERNEL gemv_rows(GLOBAL const float* A, int pitch, GLOBAL const float* x, GLOBAL float* y, int n) {
    int row = GLOBAL_X;
    if (row >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum = FMA(A[row * pitch + k], x[k], sum);
    y[row] = sum;
}

// C = A * transposed A + C, C in memory all the time (PolyBench's SYRK).
KERNEL syrk(GLOBAL const float* A, GLOBAL float* C, int n) {
    int column = GLOBAL_X, row = GLOBAL_Y;
    if (row >= n || column >= n) return;
    for (int k = 0; k < n; ++k) C[row * n + column] = FMA(A[row * n + k], A[column * n + k], C[row * n + column]);
}
