// SPDX-License-Identifier: Apache-2.0
// Kernels of common algorithms, as CUDA programmers write them, once for CUDA C++ and OpenCL C. kernels.cu and
// kernels.cl define the words below and include this file.

// Sorts 1,024 numbers in shared memory: 512 threads, bitonic.
KERNEL bitonic_sort(GLOBAL unsigned* data) {
    SHARED unsigned keys[1024];
    int t = LOCAL_X, base = GROUP_X * 1024;
    keys[t] = data[base + t];
    keys[t + 512] = data[base + t + 512];
    for (int size = 2; size <= 1024; size <<= 1)
        for (int stride = size / 2; stride > 0; stride >>= 1) {
            BARRIER;
            int at = 2 * t - (t & (stride - 1));
            unsigned a = keys[at], b = keys[at + stride];
            int up = (t & (size / 2)) == 0;
            if ((a > b) == up) {
                keys[at] = b;
                keys[at + stride] = a;
            }
        }
    BARRIER;
    data[base + t] = keys[t];
    data[base + t + 512] = keys[t + 512];
}

// Exclusive sums of 512 numbers with 256 threads: up and down a tree in shared memory.
KERNEL block_scan(GLOBAL const unsigned* in, GLOBAL unsigned* out) {
    SHARED unsigned tree[512];
    int t = LOCAL_X, base = GROUP_X * 512;
    tree[2 * t] = in[base + 2 * t];
    tree[2 * t + 1] = in[base + 2 * t + 1];
    int offset = 1;
    for (int d = 256; d > 0; d >>= 1) {
        BARRIER;
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) tree[511] = 0;
    for (int d = 1; d < 512; d *= 2) {
        offset >>= 1;
        BARRIER;
        if (t < d) {
            int low = offset * (2 * t + 1) - 1, high = offset * (2 * t + 2) - 1;
            unsigned value = tree[low];
            tree[low] = tree[high];
            tree[high] += value;
        }
    }
    BARRIER;
    out[base + 2 * t] = tree[2 * t];
    out[base + 2 * t + 1] = tree[2 * t + 1];
}

// Exclusive sums of all numbers in one pass, by tiles of 1,024: a group takes the next tile by a ticket, adds up its
// own, and looks back over what the tiles before it have published. `state`: the ticket, then for each tile a word that
// says what it has published (twice the launch's number, one more when that is the sum of all up to its end), its own
// sum and that one.
KERNEL look_back_scan(GLOBAL const unsigned* in, GLOBAL unsigned* out, GLOBAL unsigned* state, int tiles) {
    SHARED unsigned sums[256];
    SHARED unsigned ticket[1];
    SHARED unsigned before[1];
    int t = LOCAL_X;
    if (t == 0) ticket[0] = ATOMIC_ADD_GLOBAL(&state[0], 1u);
    BARRIER;
    unsigned tile = ticket[0] % (unsigned)tiles, launch = ticket[0] / (unsigned)tiles + 1u;
    GLOBAL const unsigned* own = in + tile * 1024u + 4 * t;
    unsigned a = own[0], b = own[1], c = own[2], d = own[3], sum = a + b + c + d;
    sums[t] = sum;
    BARRIER;
    for (int reach = 1; reach < 256; reach *= 2) {
        unsigned other = t >= reach ? sums[t - reach] : 0u;
        BARRIER;
        sums[t] += other;
        BARRIER;
    }
    if (t == 0) {
        GLOBAL volatile unsigned* published = (GLOBAL volatile unsigned*)state + 1;
        unsigned all = sums[255], earlier = 0u;
        published[3u * tile + 1u] = all;
        FENCE;
        published[3u * tile] = 2u * launch;
        for (int back = (int)tile - 1; back >= 0; --back) {
            unsigned what;
            do what = published[3 * back];
            while (what < 2u * launch);
            FENCE;
            earlier += published[3 * back + (what & 1u ? 2 : 1)];
            if (what & 1u) break;
        }
        published[3u * tile + 2u] = earlier + all;
        FENCE;
        published[3u * tile] = 2u * launch + 1u;
        before[0] = earlier;
    }
    BARRIER;
    unsigned first = before[0] + sums[t] - sum;
    GLOBAL unsigned* place = out + tile * 1024u + 4 * t;
    place[0] = first, place[1] = first + a, place[2] = first + a + b, place[3] = first + a + b + c;
}

// One digit of a radix sort: ranks of 256 keys by four bits, one bit after the other, in shared memory.
KERNEL radix_split(GLOBAL const unsigned* in, GLOBAL unsigned* out, int shift) {
    SHARED unsigned keys[256];
    SHARED unsigned ones[256];
    int t = LOCAL_X, base = GROUP_X * 256;
    unsigned key = in[base + t];
    for (int bit = shift; bit < shift + 4; ++bit) {
        unsigned one = (key >> bit) & 1u;
        ones[t] = one;
        BARRIER;
        for (int d = 1; d < 256; d *= 2) {
            unsigned before = t >= d ? ones[t - d] : 0u;
            BARRIER;
            ones[t] += before;
            BARRIER;
        }
        unsigned zeros = 256u - ones[255];
        unsigned place = one ? zeros + ones[t] - 1u : (unsigned)t - ones[t];
        keys[place] = key;
        BARRIER;
        key = keys[t];
        BARRIER;
    }
    out[base + t] = key;
}

// 1,024 complex numbers for each group of 256 threads, radix 2, in shared memory; `roots` has cos and sin of -2 pi k /
// 1024.
KERNEL fft(GLOBAL float* data, GLOBAL const float* roots) {
    SHARED float re[1024];
    SHARED float im[1024];
    int t = LOCAL_X, base = GROUP_X * 2048;
    for (int i = t; i < 1024; i += 256) {
        unsigned r = REVERSE((unsigned)i) >> 22;
        re[r] = data[base + 2 * i];
        im[r] = data[base + 2 * i + 1];
    }
    for (int reach = 1; reach < 1024; reach *= 2) {
        BARRIER;
        for (int b = t; b < 512; b += 256) {
            int k = b & (reach - 1), i = 2 * b - k, j = i + reach, w = k * (512 / reach);
            float c = roots[2 * w], s = roots[2 * w + 1];
            float x = re[j] * c - im[j] * s, y = re[j] * s + im[j] * c;
            float u = re[i], v = im[i];
            re[i] = u + x;
            im[i] = v + y;
            re[j] = u - x;
            im[j] = v - y;
        }
    }
    BARRIER;
    for (int i = t; i < 1024; i += 256) {
        data[base + 2 * i] = re[i];
        data[base + 2 * i + 1] = im[i];
    }
}

// Rows of a separable convolution, radius 8: 128 pixels a group and the 8 on both sides in shared memory.
KERNEL convolve_rows(GLOBAL const float* in, GLOBAL float* out, GLOBAL const float* weights, int w) {
    SHARED float tile[128 + 16];
    int t = LOCAL_X, x = GROUP_X * 128 + t, row = GROUP_Y * w;
    tile[t + 8] = in[row + x];
    if (t < 8) tile[t] = x >= 8 ? in[row + x - 8] : 0.0f;
    if (t >= 120) tile[t + 16] = x + 8 < w ? in[row + x + 8] : 0.0f;
    BARRIER;
    float sum = 0.0f;
    for (int k = 0; k < 17; ++k) sum = FMA(weights[k], tile[t + k], sum);
    out[row + x] = sum;
}

// Columns of it, straight from memory.
KERNEL convolve_columns(GLOBAL const float* in, GLOBAL float* out, GLOBAL const float* weights, int w, int h) {
    int x = GLOBAL_X, y = GLOBAL_Y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    for (int k = -8; k <= 8; ++k) {
        int at = y + k;
        if (at >= 0 && at < h) sum = FMA(weights[k + 8], in[at * w + x], sum);
    }
    out[y * w + x] = sum;
}

// Bilateral filter of a gray picture, radius 3.
KERNEL bilateral(GLOBAL const float* in, GLOBAL float* out, GLOBAL const float* spatial, float range, int w, int h) {
    int x = GLOBAL_X, y = GLOBAL_Y;
    if (x >= w || y >= h) return;
    float middle = in[y * w + x], sum = 0.0f, weights = 0.0f;
    for (int dy = -3; dy <= 3; ++dy)
        for (int dx = -3; dx <= 3; ++dx) {
            int u = MIN(MAX(x + dx, 0), w - 1), v = MIN(MAX(y + dy, 0), h - 1);
            float value = in[v * w + u], d = value - middle;
            float weight = spatial[(dy + 3) * 7 + dx + 3] * EXP(-d * d * range);
            sum = FMA(weight, value, sum);
            weights += weight;
        }
    out[y * w + x] = sum / weights;
}

// The nearest of k centres for each point of four numbers.
KERNEL kmeans_assign(GLOBAL const float* points, GLOBAL const float* centres, GLOBAL int* nearest, int n, int k) {
    int i = GLOBAL_X;
    if (i >= n) return;
    float best = 3e38f;
    int at = 0;
    for (int c = 0; c < k; ++c) {
        float d = 0.0f;
        for (int j = 0; j < 4; ++j) {
            float difference = points[4 * i + j] - centres[4 * c + j];
            d = FMA(difference, difference, d);
        }
        if (d < best) {
            best = d;
            at = c;
        }
    }
    nearest[i] = at;
}

// PageRank, one iteration by incoming links.
KERNEL pagerank(GLOBAL const int* rows, GLOBAL const int* columns, GLOBAL const float* share, GLOBAL float* rank,
                int n) {
    int i = GLOBAL_X;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = rows[i]; j < rows[i + 1]; ++j) sum += share[columns[j]];
    rank[i] = 0.15f / n + 0.85f * sum;
}

// Smith-Waterman scores: a group of 64 threads for each pair of sequences of 64 letters, one diagonal after the other.
KERNEL smith_waterman(GLOBAL const int* a, GLOBAL const int* b, GLOBAL int* scores) {
    SHARED int diagonals[3][65];
    SHARED int best[64];
    int t = LOCAL_X, letter = a[GROUP_X * 64 + t], highest = 0;
    diagonals[0][t] = diagonals[1][t] = diagonals[2][t] = 0;
    if (t == 0) diagonals[0][64] = diagonals[1][64] = diagonals[2][64] = 0;
    BARRIER;
    for (int d = 0; d < 127; ++d) {
        int j = d - t, now = d % 3, last = (d + 2) % 3, before = (d + 1) % 3;
        if (j >= 0 && j < 64) {
            int match = letter == b[GROUP_X * 64 + j] ? 3 : -2;
            int left = diagonals[last][t + 1], up = diagonals[last][t], corner = diagonals[before][t];
            if (j == 0) left = corner = 0;
            int score = MAX(MAX(corner + match, 0), MAX(left, up) - 2);
            highest = MAX(highest, score);
            diagonals[now][t + 1] = score;
        }
        BARRIER;
    }
    best[t] = highest;
    BARRIER;
    for (int d = 32; d > 0; d >>= 1) {
        if (t < d) best[t] = MAX(best[t], best[t + d]);
        BARRIER;
    }
    if (t == 0) scores[GROUP_X] = best[0];
}

// LU of 32 x 32 tiles without pivots, in shared memory, 32 threads a tile: each has a column.
KERNEL lu_tiles(GLOBAL float* tiles) {
    SHARED float a[32][33];
    int t = LOCAL_X, base = GROUP_X * 1024;
    for (int row = 0; row < 32; ++row) a[row][t] = tiles[base + row * 32 + t];
    BARRIER;
    for (int k = 0; k < 31; ++k) {
        if (t > k) a[t][k] = a[t][k] / a[k][k];
        BARRIER;
        if (t > k)
            for (int row = k + 1; row < 32; ++row) a[row][t] = FMA(-a[row][k], a[k][t], a[row][t]);
        BARRIER;
    }
    for (int row = 0; row < 32; ++row) tiles[base + row * 32 + t] = a[row][t];
}

// Cholesky of 32 x 32 tiles in shared memory, 32 threads a tile: each has a row.
KERNEL cholesky_tiles(GLOBAL const float* tiles, GLOBAL float* factors) {
    SHARED float a[32][33];
    int t = LOCAL_X, base = GROUP_X * 1024;
    for (int row = 0; row < 32; ++row) a[row][t] = tiles[base + row * 32 + t];
    BARRIER;
    for (int k = 0; k < 32; ++k) {
        if (t == k) a[k][k] = SQRT(a[k][k]);
        BARRIER;
        if (t > k) a[t][k] = a[t][k] / a[k][k];
        BARRIER;
        if (t > k)
            for (int column = k + 1; column <= t; ++column) a[t][column] = FMA(-a[t][k], a[column][k], a[t][column]);
        BARRIER;
    }
    for (int row = 0; row < 32; ++row) factors[base + row * 32 + t] = t <= row ? a[row][t] : 0.0f;
}

// Conjugate gradients on a grid: q = A p of the five-point Laplacian, and the groups' parts of p * q.
KERNEL cg_apply(GLOBAL const float* p, GLOBAL float* q, GLOBAL float* parts, int w, int h) {
    SHARED float sums[256];
    int t = LOCAL_X, i = GLOBAL_X, x = i % w, y = i / w;
    float middle = p[i], sum = 4.0f * middle;
    if (x > 0) sum -= p[i - 1];
    if (x < w - 1) sum -= p[i + 1];
    if (y > 0) sum -= p[i - w];
    if (y < h - 1) sum -= p[i + w];
    q[i] = sum;
    sums[t] = middle * sum;
    BARRIER;
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d) sums[t] += sums[t + d];
        BARRIER;
    }
    if (t == 0) parts[GROUP_X] = sums[0];
}

// FDTD in two dimensions: the electric field from the magnetic one.
KERNEL fdtd_e(GLOBAL float* e, GLOBAL const float* hx, GLOBAL const float* hy, GLOBAL const float* c, int w, int h) {
    int x = GLOBAL_X, y = GLOBAL_Y;
    if (x < 1 || y < 1 || x >= w || y >= h) return;
    int i = y * w + x;
    e[i] = e[i] + c[i] * ((hy[i] - hy[i - 1]) - (hx[i] - hx[i - w]));
}

// Lattice Boltzmann, D2Q9, periodic: nine arrays of w x h.
KERNEL lbm(GLOBAL const float* f, GLOBAL float* g, float omega, int w, int h) {
    int x = GLOBAL_X, y = GLOBAL_Y, n = w * h;
    if (x >= w || y >= h) return;
    int l = x > 0 ? x - 1 : w - 1, r = x < w - 1 ? x + 1 : 0, d = y > 0 ? y - 1 : h - 1, u = y < h - 1 ? y + 1 : 0;
    float f0 = f[y * w + x], f1 = f[n + y * w + l], f2 = f[2 * n + d * w + x], f3 = f[3 * n + y * w + r],
          f4 = f[4 * n + u * w + x], f5 = f[5 * n + d * w + l], f6 = f[6 * n + d * w + r], f7 = f[7 * n + u * w + r],
          f8 = f[8 * n + u * w + l];
    float rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8, inverse = 1.0f / rho;
    float vx = (f1 - f3 + f5 - f6 - f7 + f8) * inverse, vy = (f2 - f4 + f5 + f6 - f7 - f8) * inverse;
    float s = 1.0f - 1.5f * (vx * vx + vy * vy);
    int i = y * w + x;
    float p = vx + vy, m = vx - vy;
    g[i] = f0 + omega * (rho * (4.0f / 9.0f) * s - f0);
    g[n + i] = f1 + omega * (rho * (1.0f / 9.0f) * (s + 3.0f * vx + 4.5f * vx * vx) - f1);
    g[2 * n + i] = f2 + omega * (rho * (1.0f / 9.0f) * (s + 3.0f * vy + 4.5f * vy * vy) - f2);
    g[3 * n + i] = f3 + omega * (rho * (1.0f / 9.0f) * (s - 3.0f * vx + 4.5f * vx * vx) - f3);
    g[4 * n + i] = f4 + omega * (rho * (1.0f / 9.0f) * (s - 3.0f * vy + 4.5f * vy * vy) - f4);
    g[5 * n + i] = f5 + omega * (rho * (1.0f / 36.0f) * (s + 3.0f * p + 4.5f * p * p) - f5);
    g[6 * n + i] = f6 + omega * (rho * (1.0f / 36.0f) * (s - 3.0f * m + 4.5f * m * m) - f6);
    g[7 * n + i] = f7 + omega * (rho * (1.0f / 36.0f) * (s - 3.0f * p + 4.5f * p * p) - f7);
    g[8 * n + i] = f8 + omega * (rho * (1.0f / 36.0f) * (s + 3.0f * m + 4.5f * m * m) - f8);
}

// SHA-256 of one block of 64 bytes for each thread, words of messages next to each other; `k`: the constants.
KERNEL sha256(GLOBAL const unsigned* messages, GLOBAL const unsigned* k, GLOBAL unsigned* digests, int n) {
    int i = GLOBAL_X;
    if (i >= n) return;
    unsigned w[16];
    for (int j = 0; j < 16; ++j) w[j] = messages[j * n + i];
    unsigned a = 0x6a09e667u, b = 0xbb67ae85u, c = 0x3c6ef372u, d = 0xa54ff53au, e = 0x510e527fu, f = 0x9b05688cu,
             g = 0x1f83d9abu, h = 0x5be0cd19u;
#define ROTATE(x, s) (((x) >> (s)) | ((x) << (32 - (s))))
    for (int round = 0; round < 64; round += 16) {
        UNROLL for (int j = 0; j < 16; ++j) {
            if (round > 0) {
                unsigned p = w[(j + 1) & 15], q = w[(j + 14) & 15];
                w[j] += (ROTATE(p, 7) ^ ROTATE(p, 18) ^ (p >> 3)) + w[(j + 9) & 15] +
                        (ROTATE(q, 17) ^ ROTATE(q, 19) ^ (q >> 10));
            }
            unsigned t1 =
                h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & f) ^ (~e & g)) + k[round + j] + w[j];
            unsigned t2 = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
        }
    }
    digests[i] = a + 0x6a09e667u, digests[n + i] = b + 0xbb67ae85u, digests[2 * n + i] = c + 0x3c6ef372u;
    digests[3 * n + i] = d + 0xa54ff53au, digests[4 * n + i] = e + 0x510e527fu, digests[5 * n + i] = f + 0x9b05688cu;
    digests[6 * n + i] = g + 0x1f83d9abu, digests[7 * n + i] = h + 0x5be0cd19u;
}

// Ten rounds of AES on a block of 16 bytes for each thread, by a table of 256 words in shared memory. (`keys`: 44
// words. The last round is like the others: what is timed is the same.)
KERNEL aes_rounds(GLOBAL const unsigned* in, GLOBAL unsigned* out, GLOBAL const unsigned* table,
                  GLOBAL const unsigned* keys, int n) {
    SHARED unsigned box[256];
    int t = LOCAL_X, i = GLOBAL_X;
    box[t] = table[t];
    BARRIER;
    if (i >= n) return;
    unsigned a = in[4 * i] ^ keys[0], b = in[4 * i + 1] ^ keys[1], c = in[4 * i + 2] ^ keys[2],
             d = in[4 * i + 3] ^ keys[3];
#define COLUMN(p, q, r, s, key)                                                                                        \
    (box[(p)&255u] ^ ROTATE(box[((q) >> 8) & 255u], 24) ^ ROTATE(box[((r) >> 16) & 255u], 16) ^                        \
     ROTATE(box[(s) >> 24], 8) ^ (key))
    for (int round = 1; round <= 10; ++round) {
        unsigned x = COLUMN(a, b, c, d, keys[4 * round]), y = COLUMN(b, c, d, a, keys[4 * round + 1]),
                 z = COLUMN(c, d, a, b, keys[4 * round + 2]);
        d = COLUMN(d, a, b, c, keys[4 * round + 3]);
        a = x, b = y, c = z;
    }
    out[4 * i] = a, out[4 * i + 1] = b, out[4 * i + 2] = c, out[4 * i + 3] = d;
}

// Soft-max of rows, a group of 128 threads a row.
KERNEL softmax(GLOBAL const float* in, GLOBAL float* out, int columns) {
    SHARED float partial[128];
    int t = LOCAL_X, row = GROUP_X * columns;
    float highest = -3e38f;
    for (int i = t; i < columns; i += 128) highest = FMAX(highest, in[row + i]);
    partial[t] = highest;
    BARRIER;
    for (int d = 64; d > 0; d >>= 1) {
        if (t < d) partial[t] = FMAX(partial[t], partial[t + d]);
        BARRIER;
    }
    highest = partial[0];
    BARRIER;
    float sum = 0.0f;
    for (int i = t; i < columns; i += 128) {
        float e = EXP(in[row + i] - highest);
        out[row + i] = e;
        sum += e;
    }
    partial[t] = sum;
    BARRIER;
    for (int d = 64; d > 0; d >>= 1) {
        if (t < d) partial[t] += partial[t + d];
        BARRIER;
    }
    float scale = 1.0f / partial[0];
    for (int i = t; i < columns; i += 128) out[row + i] *= scale;
}

// Layer norm of rows, a group of 128 threads a row.
KERNEL layer_norm(GLOBAL const float* in, GLOBAL const float* gain, GLOBAL const float* bias, GLOBAL float* out,
                  int columns) {
    SHARED float sums[128];
    SHARED float squares[128];
    int t = LOCAL_X, row = GROUP_X * columns;
    float sum = 0.0f, square = 0.0f;
    for (int i = t; i < columns; i += 128) {
        float x = in[row + i];
        sum += x;
        square = FMA(x, x, square);
    }
    sums[t] = sum;
    squares[t] = square;
    BARRIER;
    for (int d = 64; d > 0; d >>= 1) {
        if (t < d) {
            sums[t] += sums[t + d];
            squares[t] += squares[t + d];
        }
        BARRIER;
    }
    float mean = sums[0] / columns, scale = RSQRT(squares[0] / columns - mean * mean + 1e-5f);
    for (int i = t; i < columns; i += 128) out[row + i] = (in[row + i] - mean) * scale * gain[i] + bias[i];
}

// Attention with heads of 32, a query a thread, keys and values by tiles of 64 in shared memory, soft-max as it goes.
KERNEL attention(GLOBAL const float* q, GLOBAL const float* k, GLOBAL const float* v, GLOBAL float* out, int n,
                 float scale) {
    SHARED float keys[64][32];
    SHARED float values[64][32];
    int t = LOCAL_X, head = GROUP_Y * n * 32, i = GLOBAL_X;
    float query[32], sum[32];
    UNROLL for (int d = 0; d < 32; ++d) {
        query[d] = q[head + i * 32 + d] * scale;
        sum[d] = 0.0f;
    }
    float highest = -3e38f, total = 0.0f;
    for (int base = 0; base < n; base += 64) {
        for (int e = t; e < 64 * 32; e += 64) {
            keys[e / 32][e % 32] = k[head + base * 32 + e];
            values[e / 32][e % 32] = v[head + base * 32 + e];
        }
        BARRIER;
        for (int j = 0; j < 64; ++j) {
            float s = 0.0f;
            UNROLL for (int d = 0; d < 32; ++d) s = FMA(query[d], keys[j][d], s);
            float above = FMAX(highest, s), old = EXP(highest - above), e = EXP(s - above);
            total = total * old + e;
            UNROLL for (int d = 0; d < 32; ++d) sum[d] = FMA(e, values[j][d], sum[d] * old);
            highest = above;
        }
        BARRIER;
    }
    float inverse = 1.0f / total;
    UNROLL for (int d = 0; d < 32; ++d) out[head + i * 32 + d] = sum[d] * inverse;
}

// C = A * B of signed bytes, four to a word along k; B transposed. 16 x 16 tiles of words in shared memory.
KERNEL gemm_bytes(GLOBAL const int* a, GLOBAL const int* b, GLOBAL int* c, int n, int words) {
    SHARED int as[16][17];
    SHARED int bs[16][17];
    int tx = LOCAL_X, ty = LOCAL_Y, row = GROUP_Y * 16 + ty, column = GROUP_X * 16 + tx, sum = 0;
    for (int k = 0; k < words; k += 16) {
        as[ty][tx] = a[row * words + k + tx];
        bs[ty][tx] = b[(GROUP_X * 16 + ty) * words + k + tx];
        BARRIER;
        for (int i = 0; i < 16; ++i) sum = DP4A(as[ty][i], bs[tx][i], sum);
        BARRIER;
    }
    c[row * n + column] = sum;
}

// y = A x, A in half precision, two to a word, columns next to each other in memory: a row a thread.
KERNEL gemv_half(GLOBAL const HALF* a, GLOBAL const float* x, GLOBAL float* y, int rows, int columns) {
    int row = GLOBAL_X;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = 0; k < columns; ++k) sum = FMA(LOAD_HALF(a, k * rows + row), x[k], sum);
    y[row] = sum;
}

// The nearest of n points in the plane for each query.
KERNEL nearest(GLOBAL const float* points, GLOBAL const float* queries, GLOBAL int* indices, int n) {
    SHARED float xs[256];
    SHARED float ys[256];
    int t = LOCAL_X, i = GLOBAL_X, at = 0;
    float x = queries[2 * i], y = queries[2 * i + 1], best = 3e38f;
    for (int base = 0; base < n; base += 256) {
        xs[t] = points[2 * (base + t)];
        ys[t] = points[2 * (base + t) + 1];
        BARRIER;
        for (int j = 0; j < 256; ++j) {
            float dx = xs[j] - x, dy = ys[j] - y, d = FMA(dx, dx, dy * dy);
            if (d < best) {
                best = d;
                at = base + j;
            }
        }
        BARRIER;
    }
    indices[i] = at;
}
