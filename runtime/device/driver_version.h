// SPDX-License-Identifier: Apache-2.0
// The versions that libcuda.so.1 and libnvidia-ml.so.1 say.
#pragma once

namespace ptarmigan::runtime {

/// Of the newest CUDA whose runtime library starts: 13.5.
inline constexpr int cuda_version = 13050;
/// Of the driver branch that came with it, and no release of it. Programs take it apart at the dots.
inline constexpr char driver_version[] = "615.00";

} // namespace ptarmigan::runtime
