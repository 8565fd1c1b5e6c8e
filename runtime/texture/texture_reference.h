// SPDX-License-Identifier: Apache-2.0
// References to textures and surfaces: variables of a module that the program binds to arrays or memory before it
// launches. A kernel sees the address of one as the handle of an object with a bit on top that says what it is of.
#pragma once

#include "runtime/base/status.h"
#include "runtime/texture/texture_objects.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace ptarmigan::runtime {

/// CUtexref and CUsurfref as the driver's calls set them; what does not fit together is found out when a kernel is
/// launched.
struct ReferenceState {
    enum class Source : std::uint8_t { none, array, mipmap, linear, pitched };
    Source source = Source::none;
    std::weak_ptr<Array> array; ///< a destroyed one is as good as none
    std::weak_ptr<MipmappedArray> mipmap;
    DevicePointer memory = 0; ///< linear and pitched: aligned, what is in front of the program's pointer included
    std::size_t bytes = 0, width = 0, height = 0, pitch = 0;
    unsigned address[3] = {1, 1, 1}; ///< CUaddress_mode, clamp
    int filter = 0;                  ///< CUfilter_mode; the driver keeps any number
    unsigned flags = 0;              ///< CU_TRSF_*: those of SamplerDescription
    unsigned format = 0x20, channels = 1;
    unsigned anisotropy = 0, level_filter = 0;
    float bias = 0, lowest = 0, highest = 0, border_color[4] = {};
};

/// Thread-safe. Handles are found in HandleTable<TextureReference>.
class TextureReference {
public:
    enum class Kind : std::uint8_t { texture, surface };
    TextureReference(Kind kind, bool is_variable) : kind_(kind), is_variable_(is_variable) {}
    Kind kind() const { return kind_; }
    /// False for one of cuTexRefCreate, which no kernel can name.
    bool is_variable() const { return is_variable_; }
    ReferenceState state() const {
        std::lock_guard lock(mutex_);
        return state_;
    }
    template <class Change> void update(Change&& change) {
        std::lock_guard lock(mutex_);
        change(state_);
        changed_ = true;
    }
    /// True once after each update.
    bool take_change() { return changed_.exchange(false); }

private:
    const Kind kind_;
    const bool is_variable_;
    mutable std::mutex mutex_;
    ReferenceState state_;
    std::atomic<bool> changed_{false};
};

/// The object that a reference stands for; of kind `none` where nothing is bound. invalid_value where format, array and
/// sampler don't fit.
Status make_object(const TextureReference& reference, TextureObject& object);

/// The bits of a reference's address that say what it is of, as on the H200 (istypep tests them).
constexpr std::uint64_t reference_bit(TextureReference::Kind kind) {
    return std::uint64_t{1} << (kind == TextureReference::Kind::texture ? 61 : 63);
}

} // namespace ptarmigan::runtime
