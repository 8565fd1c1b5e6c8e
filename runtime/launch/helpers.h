// SPDX-License-Identifier: Apache-2.0
// Threads of oneTBB that help a grid's own thread.
#pragma once

#include <cstdint>
#include <memory>

namespace ptarmigan::runtime {

struct Grid;

/// Asks for `count` helpers. They come later, or not at all: when the grid is closed by then, or the process exits.
/// Never blocks for long: oneTBB itself is started by another thread.
void call_helpers(const std::shared_ptr<Grid>& grid, std::uint64_t count);

/// True once helpers can come at once: oneTBB runs. Lock-free.
bool helpers_started();

/// Waits until the helpers that came have left; those that come later turn back.
void close_to_helpers(Grid& grid);

} // namespace ptarmigan::runtime
