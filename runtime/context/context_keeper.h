// SPDX-License-Identifier: Apache-2.0
// What the folders above this one do at the turns of a context's life. They include this one and not the other way
// round, so each registers what it keeps for contexts.
#pragma once

namespace ptarmigan::runtime {

class Context;

/// The functions of a folder that keeps something for each context; null where it has nothing to do. All but `wait` are
/// quick, and `begin` is called with the context locked.
struct ContextKeeper {
    /// In the order in which they are called.
    enum class Kind : unsigned { streams, modules, textures, kernel_heap, external_objects, memory, count };

    void (*make)(Context&) = nullptr;           ///< before anybody uses the new context
    void (*begin)(Context&) = nullptr;          ///< it becomes active, perhaps not for the first time
    void (*wait)(Context&) = nullptr;           ///< for all its work
    bool (*has_work)(const Context&) = nullptr; ///< that wait() would wait for
    void (*waited)() = nullptr;                 ///< a host thread has waited for work of any context
    void (*end)(Context&) = nullptr;            ///< frees what programs made in it: all work has ended
};

/// A static object of the file that implements what is kept registers it, before main().
class RegisterContextKeeper {
public:
    RegisterContextKeeper(ContextKeeper::Kind kind, const ContextKeeper& keeper);
};

} // namespace ptarmigan::runtime
