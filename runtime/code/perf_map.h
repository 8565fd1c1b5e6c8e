// SPDX-License-Identifier: Apache-2.0
// Tells Linux perf about generated code, so that `perf report` shows kernels, or PTX lines.
#pragma once

namespace ptarmigan::runtime {

class LoadedImage;

/// Appends `image` to /tmp/perf-<pid>.map if PTARMIGAN_PERF_MAP is kernels (a symbol per kernel) or lines (a symbol per
/// run of one PTX line). Thread-safe; trouble with the file is ignored.
void add_to_perf_map(const LoadedImage& image);

} // namespace ptarmigan::runtime
