// SPDX-License-Identifier: Apache-2.0
// Objects of a thread that live until it ends, not until the process exits.
#pragma once

#include <utility>

namespace ptarmigan::runtime {

/// Calls `clean_up(object)` when the calling thread ends by itself, after its C++ thread_locals are gone. Not for the
/// thread that calls exit(): C++ destroys that one's thread_locals before the program's static objects, whose
/// destructors may still call in.
void at_thread_end(void (*clean_up)(void*), void* object);

/// What `mine`, a thread_local pointer, points to; made on first use, freed when the thread ends (and made again if
/// somebody asks later still). The reference is the calling thread's alone.
template <class T> T& per_thread(T*& mine) {
    if (!mine) {
        mine = new T;
        const auto clean_up = [](void* place) { delete std::exchange(*static_cast<T**>(place), nullptr); };
        at_thread_end(clean_up, &mine);
    }
    return *mine;
}

} // namespace ptarmigan::runtime
