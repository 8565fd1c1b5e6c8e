// SPDX-License-Identifier: Apache-2.0
// Loads and stores of every shape against a loop over lanes. Memory beyond what active lanes may touch is not mapped.
#include "lane_program.h"
#include "translator/lower/memory_access.h"

#include <catch2/catch.hpp>
#include <llvm/IR/DebugInfoMetadata.h>

#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace ptarmigan;
using namespace ptarmigan::translator;
using lower::MemoryAccess;

namespace {

/// Pages with nothing mapped before and after.
class GuardedMemory {
public:
    explicit GuardedMemory(std::size_t pages) : page_(std::size_t(getpagesize())), size_(pages * page_) {
        base_ = static_cast<std::uint8_t*>(
            mmap(nullptr, size_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        REQUIRE(base_ != MAP_FAILED);
        REQUIRE(mprotect(base_ + page_, size_, PROT_READ | PROT_WRITE) == 0);
    }
    ~GuardedMemory() { munmap(base_, size_ + 2 * page_); }
    GuardedMemory(const GuardedMemory&) = delete;
    GuardedMemory& operator=(const GuardedMemory&) = delete;
    std::uint8_t* begin() const { return base_ + page_; }
    std::uint8_t* end() const { return begin() + size_; }

private:
    std::size_t page_, size_;
    std::uint8_t* base_;
};

struct Case {
    const char* name;
    LaneOffsets offsets, steps;
    std::int64_t stride = 0;
    unsigned bytes = 4, count = 1;
};

LaneOffsets lanes(unsigned width, const std::function<std::int64_t(unsigned)>& offset) {
    LaneOffsets result;
    for (unsigned lane = 0; lane < width; ++lane) result.push_back(offset(lane));
    return result;
}

std::vector<Case> cases(unsigned width) {
    std::vector<Case> result;
    for (unsigned bytes : {1u, 2u, 4u, 8u}) {
        std::int64_t b = bytes;
        auto add = [&](const char* name, const std::function<std::int64_t(unsigned)>& offset, unsigned count = 1) {
            result.push_back({name, lanes(width, offset), {}, 0, bytes, count});
        };
        add("contiguous", [=](unsigned l) { return b * l; });
        add("reversed", [=](unsigned l) { return -b * l; });
        add("stride 2", [=](unsigned l) { return 2 * b * l; });
        add("stride 3", [=](unsigned l) { return 3 * b * l; });
        add("stride 4", [=](unsigned l) { return 4 * b * l; });
        add("stride 100", [=](unsigned l) { return 100 * b * l; });
        add("same", [=](unsigned) { return 0; });
        add("two rows", [=](unsigned l) { return b * (l % 16) + 1000 * b * (l / 16); });
        add("row number", [=](unsigned l) { return 512 * b * (l / 16); });
        add("rows of 3", [=](unsigned l) { return b * (l % 3) + 64 * b * (l / 3); });
        add("pairs", [=](unsigned l) { return b * (l / 2); });
        add("backward pairs", [=](unsigned l) { return b * (l ^ 1); });
        add("v2", [=](unsigned l) { return 2 * b * l; }, 2);
        add("v4", [=](unsigned l) { return 4 * b * l; }, 4);
        add("v4 apart", [=](unsigned l) { return 64 * b * l; }, 4);
        if (bytes >= 4) { // groups of single accesses (analysis/memory/access_groups.h)
            add("v3", [=](unsigned l) { return 3 * b * l; }, 3);
            add("v3 of 4", [=](unsigned l) { return 4 * b * l; }, 3);
            add("v3 apart", [=](unsigned l) { return 50 * b * l; }, 3);
            add("v2 of 3", [=](unsigned l) { return 3 * b * l; }, 2);
            add("v4 of 6", [=](unsigned l) { return 6 * b * l; }, 4);
        }
        add("v2 same", [=](unsigned) { return 0; }, 2);
        add("v2 rows", [=](unsigned l) { return 2 * b * (l % 8) + 256 * b * (l / 8); }, 2);
        result.push_back({"run-time rows", lanes(width, [=](unsigned l) { return b * (l % 16); }),
                          lanes(width, [](unsigned l) { return l / 16; }), 68 * b, bytes, 1});
        result.push_back({"run-time stride", lanes(width, [](unsigned) { return 0; }),
                          lanes(width, [](unsigned l) { return l; }), 24 * b, bytes, 1});
        result.push_back({"run-time v4", lanes(width, [=](unsigned l) { return 4 * b * (l % 16); }),
                          lanes(width, [](unsigned l) { return l / 16; }), -128 * b, bytes, 4});
    }
    return result;
}

std::int64_t lane_offset(const Case& test, unsigned lane) {
    return test.offsets[lane] + (test.steps.empty() ? 0 : test.stride * test.steps[lane]);
}

/// Where lane 0's access must be so that the lanes of `mask` touch the first or the last byte of the memory.
std::uint8_t* placed(const Case& test, const GuardedMemory& memory, std::uint64_t mask, bool at_end) {
    std::int64_t low = INT64_MAX, high = INT64_MIN;
    for (unsigned lane = 0; lane < test.offsets.size(); ++lane) {
        if (!(mask >> lane & 1)) continue;
        low = std::min(low, lane_offset(test, lane));
        high = std::max(high, lane_offset(test, lane) + std::int64_t(test.bytes * test.count));
    }
    return at_end ? memory.end() - high : memory.begin() - low;
}

/// The address in one of the shapes: 0 affine, 1 affine with a guard that fails, 2 varying.
MemoryAccess access_of(LaneEmitter& e, const Case& test, int form) {
    MemoryAccess access;
    Ir& ir = e.ir();
    access.bytes = test.bytes;
    access.count = test.count;
    access.element_aligned = test.count == 3 || test.offsets.back() % (test.bytes * test.count) != 0;
    access.element = ir.getIntNTy(8 * test.bytes);
    LaneValue base = e.uniform_input(0, ir.getInt64Ty());
    LaneValue& address = access.address.address;
    address.shape = {Shape::Level::affine, &test.offsets, test.steps.empty() ? nullptr : &test.steps};
    address.base = base.base;
    if (!test.steps.empty()) address.stride = e.uniform_input(1, ir.getInt64Ty()).base;
    if (form == 2) address = LaneValue::varying(e.varying_input(2, ir.getInt64Ty()).base);
    if (form == 1) {
        // The base is wrong by 1 MiB, and the correction says so.
        address.base = ir.CreateAdd(address.base, ir.getInt64(1 << 20));
        address.shape.guard = 7;
        access.address.guard = ir.CreateICmpEQ(base.base, ir.getInt64(0));
        e.correction = e.splat(ir.getInt64(std::uint64_t(-(1 << 20))));
    }
    access.address.space = ptx::StateSpace::global;
    return access;
}

std::vector<LaneSlot> address_inputs(const Case& test, std::uint8_t* base, std::size_t slots) {
    std::vector<LaneSlot> in(slots);
    in[0].set(0, reinterpret_cast<std::uint64_t>(base));
    in[1].set(0, test.stride);
    for (unsigned lane = 0; lane < test.offsets.size(); ++lane)
        in[2].set(lane, reinterpret_cast<std::uint64_t>(base) + std::uint64_t(lane_offset(test, lane)));
    return in;
}

std::vector<std::uint64_t> masks(unsigned width, bool full) {
    std::uint64_t all = (1ull << width) - 1;
    if (full) return {all};
    if (width == 8) return {all, 0x5a, 1, 0x80};
    return {all, 0x5a5a5a5a & all, 1, 1ull << (width - 1), 0x0ffe & all, 0x90040000 & all, 0x00040011 & all};
}

void check_loads(unsigned width, bool full, const std::string& target) {
    GuardedMemory memory(16);
    std::mt19937 random(1);
    for (std::uint8_t* p = memory.begin(); p != memory.end(); ++p) *p = std::uint8_t(random());
    abi::CtaContext context{};
    for (const Case& test : cases(width)) {
        for (int form = 0; form < 3; ++form) {
            LaneProgram program({width, full, target}, [&](LaneEmitter& e) {
                auto values = load_lanes(e, access_of(e, test, form));
                for (unsigned k = 0; k < values.size(); ++k) e.output(k, values[k]);
            });
            for (std::uint64_t mask : masks(width, full)) {
                for (bool at_end : {false, true}) {
                    std::uint8_t* base = placed(test, memory, mask, at_end);
                    std::vector<LaneSlot> out(4);
                    program.run(context, address_inputs(test, base, 3), out, mask);
                    for (unsigned lane = 0; lane < width; ++lane) {
                        if (!(mask >> lane & 1)) continue;
                        for (unsigned k = 0; k < test.count; ++k) {
                            INFO(test.name << " bytes " << test.bytes << " form " << form << " lane " << lane
                                           << " element " << k << " mask " << mask << " end " << at_end);
                            REQUIRE(std::memcmp(out[k].bytes.data() + lane * test.bytes,
                                                base + lane_offset(test, lane) + k * test.bytes, test.bytes) == 0);
                        }
                    }
                }
            }
        }
    }
}

void check_stores(unsigned width, bool full, const std::string& target) {
    GuardedMemory memory(16);
    std::size_t size = std::size_t(memory.end() - memory.begin());
    std::mt19937 random(2);
    abi::CtaContext context{};
    for (const Case& test : cases(width)) {
        for (int form = 0; form < 3; ++form) {
            LaneProgram program({width, full, target}, [&](LaneEmitter& e) {
                MemoryAccess access = access_of(e, test, form);
                llvm::SmallVector<LaneValue, 4> values;
                for (unsigned k = 0; k < test.count; ++k) values.push_back(e.varying_input(3 + k, access.element));
                store_lanes(e, access, values);
            });
            for (std::uint64_t mask : masks(width, full)) {
                std::uint8_t* base = placed(test, memory, mask, random() & 1);
                std::vector<LaneSlot> in = address_inputs(test, base, 7), out;
                for (unsigned slot = 3; slot < 7; ++slot)
                    for (std::uint8_t& byte : in[slot].bytes) byte = std::uint8_t(random());
                std::memset(memory.begin(), 0xcc, size);
                program.run(context, in, out, mask);
                std::vector<std::uint8_t> expected(size, 0xcc);
                for (unsigned lane = 0; lane < width; ++lane) {
                    if (!(mask >> lane & 1)) continue;
                    for (unsigned k = 0; k < test.count; ++k)
                        std::memcpy(expected.data() + (base - memory.begin()) + lane_offset(test, lane) + k * test.bytes,
                                    in[3 + k].bytes.data() + lane * test.bytes, test.bytes);
                }
                INFO(test.name << " bytes " << test.bytes << " form " << form << " mask " << mask);
                REQUIRE(std::memcmp(memory.begin(), expected.data(), size) == 0);
            }
        }
    }
}

std::vector<std::string> targets() {
    if (host_target().avx512) return {"host", "x86-64-v3"};
    return {"host"};
}

} // namespace

TEST_CASE("loads of every shape read the lanes' own memory and nothing else", "[lower][memory]") {
    for (const std::string& target : targets())
        for (bool full : {true, false}) check_loads(32, full, target);
    check_loads(8, false, "host");
    check_loads(4, true, "host");
}

TEST_CASE("stores of every shape write the lanes' own memory and nothing else", "[lower][memory]") {
    for (const std::string& target : targets())
        for (bool full : {true, false}) check_stores(32, full, target);
    check_stores(8, false, "host");
    check_stores(4, true, "host");
}

TEST_CASE("a uniform address gives one access, and the last active lane's value is stored", "[lower][memory]") {
    GuardedMemory memory(1);
    abi::CtaContext context{};
    auto* word = reinterpret_cast<std::uint32_t*>(memory.begin());
    LaneProgram load({32, false, "host"}, [](LaneEmitter& e) {
        MemoryAccess access;
        access.address.address = e.uniform_input(0, e.ir().getInt64Ty());
        access.element = e.ir().getInt32Ty();
        auto values = load_lanes(e, access);
        REQUIRE(values.front().is_uniform());
        e.output(0, values.front());
    });
    std::vector<LaneSlot> in(2), out(1);
    in[0].set(0, reinterpret_cast<std::uint64_t>(word));
    *word = 4711;
    load.run(context, in, out, 2);
    CHECK(out[0].get<std::uint32_t>(1) == 4711);
    in[0].set(0, std::uint64_t(8)); // no lane is active: the address must not be used
    load.run(context, in, out, 0);

    LaneProgram store({32, false, "host"}, [](LaneEmitter& e) {
        MemoryAccess access;
        access.address.address = e.uniform_input(0, e.ir().getInt64Ty());
        access.element = e.ir().getInt32Ty();
        store_lanes(e, access, e.varying_input(1, access.element));
    });
    for (unsigned lane = 0; lane < 32; ++lane) in[1].set(lane, 100 + lane);
    store.run(context, in, out, 0);
    in[0].set(0, reinterpret_cast<std::uint64_t>(word));
    store.run(context, in, out, 0x00c0);
    CHECK(*word == 107);
    store.run(context, in, out, 1);
    CHECK(*word == 100);
}

TEST_CASE("loads are their lanes', but the inserts of what they loaded are not", "[lower][memory]") {
    LaneProgram({8, false, "x86-64-v3"}, [](LaneEmitter& e) {
        llvm::LLVMContext& context = e.context();
        auto* file = llvm::DIFile::get(context, "test", "");
        auto* scope = llvm::DISubprogram::getDistinct(context, file, "test", "test", file, 1, nullptr, 1, nullptr, 0, 0,
                                                      llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagZero, nullptr);
        e.marked = llvm::DILocation::get(context, 1, 1, scope);
        MemoryAccess access;
        access.address.address = e.varying_input(0, e.ir().getInt64Ty());
        access.element = e.ir().getInt16Ty();
        access.bytes = 2;
        load_lanes(e, access);
        unsigned loads = 0, inserts = 0;
        for (llvm::BasicBlock& block : *e.ir().GetInsertBlock()->getParent())
            for (llvm::Instruction& made : block) {
                if (made.getDebugLoc()) loads += llvm::isa<llvm::LoadInst>(made);
                if (made.getDebugLoc()) inserts += llvm::isa<llvm::InsertElementInst>(made);
                made.setDebugLoc({});
            }
        CHECK(loads == 8);
        CHECK(inserts == 0);
    });
}
