// SPDX-License-Identifier: Apache-2.0
// Gravity between all pairs of bodies, positions staged through shared memory, several steps.
#include "common/program.h"

struct Body {
    float x, y, z, mass;
};

KERNEL void nbody_step(const Body* bodies, Body* moved, Body* velocities, int n, float dt);

#ifdef __CUDACC__
__global__ void nbody_step(const Body* bodies, Body* moved, Body* velocities, int n, float dt) {
    __shared__ float4 tile[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float4 self = reinterpret_cast<const float4*>(bodies)[min(i, n - 1)];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += 128) {
        const int j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? reinterpret_cast<const float4*>(bodies)[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < 128; ++k) {
            const float dx = tile[k].x - self.x, dy = tile[k].y - self.y, dz = tile[k].z - self.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            const float force = tile[k].w * inverse * inverse * inverse;
            ax += dx * force;
            ay += dy * force;
            az += dz * force;
        }
        __syncthreads();
    }
    if (i >= n) return;
    Body v = velocities[i];
    v.x += ax * dt;
    v.y += ay * dt;
    v.z += az * dt;
    velocities[i] = v;
    moved[i] = Body{self.x + v.x * dt, self.y + v.y * dt, self.z + v.z * dt, self.w};
}
#endif

int main(int argc, char** argv) {
    const test::Program program("nbody", argc, argv);
    const int n = program.argument(0, 600), steps = program.argument(1, 4);
    const float dt = 0.01f;
    test::Random random(8);
    std::vector<Body> bodies(n);
    for (Body& b : bodies) {
        b = {random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(0.5f, 1) / n};
    }
    const test::Buffer<Body> first(bodies), second(n), velocities(n);
    for (int s = 0; s < steps; ++s)
        LAUNCH(nbody_step, test::blocks_for(n, 128), 128, 0, s % 2 ? second : first, s % 2 ? first : second, velocities,
               n, dt);
    std::vector<double> p(3 * n), v(3 * n);
    for (int i = 0; i < n; ++i) {
        p[3 * i] = bodies[i].x;
        p[3 * i + 1] = bodies[i].y;
        p[3 * i + 2] = bodies[i].z;
    }
    for (int s = 0; s < steps; ++s) {
        const std::vector<double> old = p;
        for (int i = 0; i < n; ++i) {
            double a[3] = {};
            for (int j = 0; j < n; ++j) {
                double d[3], squared = 0.01;
                for (int c = 0; c < 3; ++c) {
                    d[c] = old[3 * j + c] - old[3 * i + c];
                    squared += d[c] * d[c];
                }
                for (int c = 0; c < 3; ++c) a[c] += d[c] * bodies[j].mass / (squared * std::sqrt(squared));
            }
            for (int c = 0; c < 3; ++c) p[3 * i + c] += (v[3 * i + c] += a[c] * dt) * dt;
        }
    }
    std::vector<float> actual;
    for (const Body& b : (steps % 2 ? second : first).download()) actual.insert(actual.end(), {b.x, b.y, b.z});
    const double error = test::worst_error(actual, p);
    return program.finish(error < 1e-5, "n=%d steps=%d error=%.2g", n, steps, error);
}
