// Sines whose multiplication by 1/2pi stands in another block than MUFU, or under a guard; minima of halves with predicates.
extern "C" __global__ void sine_in_arms(const unsigned* in, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = (in[i] & 0xffff) * 0.0001f, y = x * 0.5f;
    float v = 7;
    if (x > 1.5f) { float t = __cosf(x); if (t > 0.5f) v = t; else { x = x * 3; v = __cosf(x) + t; } }
    else if (y > 0.25f) v = __sinf(y);
    out[i] = __float_as_uint(v);
}
extern "C" __global__ void sine_behind_branch(const unsigned* in, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = (in[i] & 0xffff) * 0.0001f, v = 0;
    if (in[i] & 1) { v = __sinf(x); out[i ^ 0] = 3; } else { v = __cosf(x) * 2; }
    if (in[i] & 2) v += __sinf(x); else v -= __cosf(x + v);
    out[i] = __float_as_uint(v);
}
extern "C" __global__ void sine_in_loop(const unsigned* in, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = (in[i] & 0xffff) * 0.0001f, v = 0;
    for (unsigned k = 0; k < (in[i] & 7); ++k) { v += __sinf(x); if (v > 1.5f) v = __cosf(x) * v; }
    out[i] = __float_as_uint(v);
}
extern "C" __global__ void sine_of_turns(const unsigned* in, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = (in[i] & 0xffff) * 0.0001f, v = 1;
    if ((in[i] & 3) != 0) v = __sinf(x);
    out[i] = __float_as_uint(v);
}
extern "C" __global__ void halves_with_predicates(const unsigned* in, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a = in[i], b = in[i ^ 1] ^ (i & 2 ? 0 : 0x80008000u);
    bool p, q, r, s, t, u, v, w;
    unsigned x = __vibmax_s16x2(a, b, &p, &q), y = __vibmin_u16x2(a, b, &r, &s), z = __vibmin_s16x2(a, a & 0xffff, &t, &u), o = __vibmax_u16x2(a & 0xff00ff, b, &v, &w);
    out[i] = x * 3 + y * 5 + z * 7 + o * 11 + (p + 2 * q + 4 * r + 8 * s + 16 * t + 32 * u + 64 * v + 128 * w) * 0x01000193;
}
