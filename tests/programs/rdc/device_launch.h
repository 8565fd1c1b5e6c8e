// SPDX-License-Identifier: Apache-2.0
// Kernels that the two files of device_launch launch from the device.
#pragma once

#ifdef __CUDACC__
/// Counts a node of a tree, and launches its children.
__global__ void count_node(int* nodes, int level, int levels);
#endif
