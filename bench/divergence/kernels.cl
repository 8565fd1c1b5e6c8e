// SPDX-License-Identifier: Apache-2.0
// OpenCL words for portable_kernels.h.
#define KERNEL __kernel void
#define GLOBAL __global
#define GLOBAL_X ((int)get_global_id(0))
#define GLOBAL_Y ((int)get_global_id(1))
#define FMA fma
#define ABS fabs
#define SQRT sqrt
#define FUNCTION
#include "path_tracer.h"
#include "portable_kernels.h"
