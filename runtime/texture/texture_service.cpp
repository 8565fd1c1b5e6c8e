// SPDX-License-Identifier: Apache-2.0
// Lane by lane: from the call's arrays to the sampler or the surface unit, and the results back. A fault leaves the
// kernel, so nothing here may need a destructor.
#include "runtime/texture/texture_service.h"

#include "runtime/code/fault.h"
#include "runtime/texture/fetch_of.h"
#include "runtime/texture/object_table.h"
#include "runtime/texture/plane_fetch.h"
#include "runtime/texture/sampler.h"
#include "runtime/texture/slice_fetch.h"
#include "runtime/texture/surface.h"
#include "runtime/texture/surface_lanes.h"

#include <bit>
#include <cstring>
#include <iterator>

namespace ptarmigan::runtime {
namespace {

using Call = abi::TextureCall;
using Geometry = abi::TextureGeometry;
using Operation = abi::TextureOperation;

struct LaneCall {
    abi::CtaContext* cta;
    std::uint32_t step;
    Call& call;
    unsigned lane;

    bool has(std::uint32_t flag) const { return (call.flags & flag) != 0; }
    Geometry geometry() const { return static_cast<Geometry>(call.geometry); }
    [[noreturn]] void fail(abi::Fault fault) const {
        FaultRecord record;
        record.fault = fault;
        record.cta = cta;
        record.step = step;
        record.lanes = std::uint64_t{1} << lane;
        record.line = call.line;
        raise_fault(record);
    }
    /// Null for a number without an object: the H200 reads zeros then, and stores nothing.
    const TextureObject* object() const {
        const std::uint64_t number = call.handle[lane] & TextureTable::number_bits;
        if (number >= TextureTable::capacity) fail(abi::Fault::illegal_address);
        return TextureTable::get().last(number);
    }
};

void give(const LaneCall& at, const Texel& texel) {
    std::uint32_t words[4];
    std::memcpy(words, texel.channel, sizeof words);
    if (at.has(Call::half_results | Call::packed_results))
        for (std::uint32_t& word : words) word = float_to_half(std::bit_cast<float>(word));
    if (at.has(Call::packed_results)) {
        words[0] |= words[1] << 16;
        words[1] = words[2] | words[3] << 16;
    }
    for (unsigned i = 0; i < 4; ++i) at.call.data[i][at.lane] = words[i];
}

SurfaceAccess access_of(const LaneCall& at, unsigned bytes) {
    SurfaceAccess access;
    access.geometry = at.geometry();
    access.bounds = static_cast<abi::SurfaceBounds>(at.call.bounds);
    access.bytes = bytes;
    const unsigned first = has_layer(access.geometry) ? 1 : 0;
    if (first) access.layer = at.call.coordinates[0][at.lane];
    for (unsigned i = 0; i < coordinates_of(access.geometry); ++i)
        access.coordinate[i] = static_cast<std::int32_t>(at.call.coordinates[first + i][at.lane]);
    return access;
}

std::uint8_t* place_of(const LaneCall& at, const TextureObject& surface, unsigned bytes, bool by_texel) {
    SurfaceFault fault = SurfaceFault::none;
    std::uint8_t* place = surface_place(surface, access_of(at, bytes), by_texel, fault);
    if (fault == SurfaceFault::misaligned) at.fail(abi::Fault::misaligned_address);
    if (fault == SurfaceFault::outside) at.fail(abi::Fault::illegal_address);
    return place;
}

/// suld.b and sust.b: elements of `detail` bytes, each in words of its own.
void move_elements(const LaneCall& at, const TextureObject& surface, bool store) {
    const Call& call = at.call;
    const unsigned element = call.detail, words = element == 8 ? 2 : 1;
    std::uint8_t* place = place_of(at, surface, element * call.count, false);
    for (unsigned i = 0; i < call.count * words; ++i) {
        std::uint32_t word = at.call.data[i][at.lane];
        const unsigned bytes = element == 8 ? 4 : element;
        if (store) {
            if (place) std::memcpy(place + std::size_t{i} * bytes, &word, bytes);
        } else {
            word = 0;
            if (place) std::memcpy(&word, place + std::size_t{i} * bytes, bytes);
            at.call.data[i][at.lane] = word;
        }
    }
}

void store_whole_texel(const LaneCall& at, const TextureObject& surface) {
    std::uint8_t* place = place_of(at, surface, surface.image.format.bytes(), true);
    if (!place) return;
    std::uint32_t words[4] = {};
    for (unsigned i = 0; i < at.call.count; ++i) words[i] = at.call.data[i][at.lane];
    store_texel(place, surface.image.format, words, at.call.count);
}

void reduce(const LaneCall& at, const TextureObject& surface, bool by_texel) {
    using Reduction = abi::SurfaceReduction;
    const bool wide = at.has(Call::elements_64);
    std::uint8_t* place = place_of(at, surface, wide ? 8 : 4, by_texel);
    if (!place) return;
    auto operation = static_cast<Reduction>(at.call.detail);
    // The texels' format says what sured.p compares.
    if (by_texel && surface.image.format.kind == TexelFormat::Kind::signed_integer) {
        if (operation == Reduction::min_u) operation = Reduction::min_s;
        if (operation == Reduction::max_u) operation = Reduction::max_s;
    }
    const std::uint64_t low = at.call.data[0][at.lane], high = wide ? at.call.data[1][at.lane] : 0;
    surface_reduce(place, operation, wide, low | high << 32);
}

void give_query(const LaneCall& at, const TextureObject& object) {
    const std::uint32_t level = at.has(Call::with_level) ? at.call.level[at.lane] : 0;
    at.call.data[0][at.lane] = query(object, static_cast<abi::TextureQuery>(at.call.detail), level);
}

/// A fetch or access of other dimensions than the object's gives zeros, as on the H200. Surfaces see a cube's faces as
/// layers.
bool fits(Geometry geometry, const TextureObject& object, bool is_fetch) {
    const bool cube = geometry == Geometry::cube || geometry == Geometry::acube;
    if (is_fetch && cube != object.image.cube) return false;
    return cube || coordinates_of(geometry) == object.image.dimensions;
}

void give_zeros(const LaneCall& at) {
    for (auto& lanes : at.call.data) lanes[at.lane] = 0;
}

void run_lane(const LaneCall& at) {
    const auto operation = static_cast<Operation>(at.call.operation);
    const TextureObject* object = at.object();
    const bool is_fetch = operation == Operation::fetch || operation == Operation::gather;
    const bool is_query = operation == Operation::query || operation == Operation::query_surface;
    if (!object || (!is_query && !fits(at.geometry(), *object, is_fetch))) return give_zeros(at);
    switch (operation) {
    case Operation::fetch: return give(at, fetch(*object, fetch_of(at.call, at.lane)));
    case Operation::gather: return give(at, gather(*object, fetch_of(at.call, at.lane), at.call.detail));
    case Operation::query:
    case Operation::query_surface: return give_query(at, *object);
    case Operation::load: return move_elements(at, *object, false);
    case Operation::store: return move_elements(at, *object, true);
    case Operation::store_texel: return store_whole_texel(at, *object);
    case Operation::reduce: return reduce(at, *object, false);
    case Operation::reduce_texel: return reduce(at, *object, true);
    }
}

/// Lanes at rest may have any handle.
bool have_one_handle(const Call& call) {
    const std::uint64_t handle = call.handle[std::countr_zero(call.active)];
    std::uint64_t differing = 0;
    const auto count = static_cast<unsigned>(std::bit_width(call.active));
    for (unsigned lane = 0; lane < count; ++lane) differing |= call.handle[lane] ^ handle;
    if (differing == 0) return true;
    for (std::uint64_t lanes = call.active; lanes != 0; lanes &= lanes - 1)
        if (call.handle[std::countr_zero(lanes)] != handle) return false;
    return true;
}

/// Those of `lanes` that have the first one's handle.
std::uint64_t lanes_like_first(const Call& call, std::uint64_t lanes) {
    const std::uint64_t handle = call.handle[std::countr_zero(lanes)];
    std::uint64_t like = 0;
    for (unsigned lane = 0; lane < std::size(call.handle); ++lane)
        like |= std::uint64_t{call.handle[lane] == handle} << lane;
    return like & lanes;
}

/// At most three: then the lanes of each together are faster than all lanes with their own sizes and places.
bool have_few_handles(const Call& call) {
    std::uint64_t left = call.active;
    for (unsigned group = 0; group < 3 && left != 0; ++group) left &= ~lanes_like_first(call, left);
    return left == 0;
}

/// The object of each lane; those at rest have an active one's. False if one has none.
bool find_textures(const Call& call, Textures& textures) {
    textures.fill(nullptr);
    const TextureObject* some = nullptr;
    for (std::uint64_t lanes = call.active; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
        some = textures[lane] = TextureTable::get().last(call.handle[lane] & TextureTable::number_bits);
        if (!some) return false;
    }
    for (const TextureObject*& texture : textures) texture = texture ? texture : some;
    return true;
}

/// The active lanes, which have one handle, together as far as that can be; the others one by one.
void run_lanes(abi::CtaContext* cta, std::uint32_t step, Call& call) {
    std::uint64_t lanes = call.active;
    const std::uint64_t number = call.handle[std::countr_zero(lanes)] & TextureTable::number_bits;
    if (const TextureObject* object = TextureTable::get().last(number)) {
        if (fetch_plane(call, *object) || access_surface(call, *object)) return;
        if ((lanes & (lanes - 1)) != 0) lanes = fetch_slices(call, *object); // one lane is faster alone
    }
    for (; lanes != 0; lanes &= lanes - 1) run_lane({cta, step, call, static_cast<unsigned>(std::countr_zero(lanes))});
}

} // namespace

void texture_service(abi::CtaContext* cta, std::uint32_t step, abi::TextureCall* call) {
    const std::uint64_t active = call->active;
    if (active == 0) return;
    if (have_one_handle(*call)) return run_lanes(cta, step, *call);
    if (static_cast<Operation>(call->operation) == Operation::fetch) {
        Textures textures;
        std::uint64_t lanes = active;
        if (!have_few_handles(*call) && find_textures(*call, textures)) lanes = fetch_slices(*call, textures);
        if (lanes != active) {
            for (; lanes != 0; lanes &= lanes - 1)
                run_lane({cta, step, *call, static_cast<unsigned>(std::countr_zero(lanes))});
            return;
        }
        for (std::uint64_t left = active; left != 0; left &= ~call->active) {
            call->active = lanes_like_first(*call, left);
            run_lanes(cta, step, *call);
        }
        call->active = active;
        return;
    }
    for (std::uint64_t lanes = active; lanes != 0; lanes &= lanes - 1) // of several surfaces: in order
        run_lane({cta, step, *call, static_cast<unsigned>(std::countr_zero(lanes))});
}

} // namespace ptarmigan::runtime
