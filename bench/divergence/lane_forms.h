// SPDX-License-Identifier: Apache-2.0
// The kernels of portable_kernels.h as ISPC would have them: a gang of lanes per iteration, written with vectors and
// masks.
#pragma once

#include "bench/kernels/kernel_case.h"

namespace bench::lane_forms {

void mandelbrot(int* out, int size, int limit);
void bfs_level(const int* first, const int* neighbours, const int* levels, int* next, int count, int level);
void spmv(const int* first, const int* columns, const float* values, const float* x, float* y, int count);
void cast_rays(const int* solid, int* steps, int size, int rays);
void match_string(const unsigned char* text, const unsigned char* pattern, int* found, int count, int length);

} // namespace bench::lane_forms
