// SPDX-License-Identifier: Apache-2.0
// Rules of calls of functions that the runtime provides: through registers, where their addresses are in bank 4, or, of
// libcudadevrt's functions whose bodies end in calls of NVIDIA's driver, directly. And of calls through registers of
// the kernel's own functions, whose places are in bank 2.
//
// A provided function's address is a number that no memory has, so that it may travel through registers and branches:
// where it is known at the call there is one function, else the lanes are sent where their register says.
// Arguments are in R4 and behind, 64-bit ones in pairs that begin at an even register; results are in R4 and R5.
#include "frontend/sass/lifter.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>

namespace ptarmigan::sass {
namespace {

struct ProvidedFunction {
    std::string_view name;
    std::string_view parameters; ///< a digit of bytes each, d: dim3, in three registers
    char result;                 ///< its bytes, 0: none
    bool is_library = false;     ///< libcudadevrt's: the cubin holds a body, which calls what only NVIDIA's driver has
};

/// Under the names that device_runtime.def tells of.
#define DEVICE_RUNTIME_ROWS(name, parameters, result)                                                                  \
    {"cuda" name, parameters, result, true}, {"cuda" name "_ptsz", parameters, result, true},                          \
        {"__cudaCDP2" name, parameters, result, true}, {                                                               \
        "__cudaCDP2" name "_ptsz", parameters, result, true                                                            \
    }

constexpr ProvidedFunction functions[] = {
    {"vprintf", "88", 4},
    {"malloc", "8", 8},
    {"free", "8", 0},
    {"__assertfail", "88488", 0},
    {"cudaGraphSetConditional", "84", 0},
    {"cudaGraphLaunch", "88", 4},
    {"cudaCGGetIntrinsicHandle", "4", 8, true},
    {"cudaCGGetSize", "888", 4, true},
    {"cudaCGGetRank", "888", 4, true},
    {"cudaCGSynchronize", "84", 4, true},
    {"cudaCGSynchronizeGrid", "84", 4, true},
    DEVICE_RUNTIME_ROWS("GetParameterBufferV2", "8dd4", 8),
    DEVICE_RUNTIME_ROWS("LaunchDeviceV2", "88", 4),
    DEVICE_RUNTIME_ROWS("GetLastError", "", 4),
    DEVICE_RUNTIME_ROWS("PeekAtLastError", "", 4),
    DEVICE_RUNTIME_ROWS("StreamCreateWithFlags", "84", 4),
    DEVICE_RUNTIME_ROWS("StreamDestroy", "8", 4),
    DEVICE_RUNTIME_ROWS("StreamWaitEvent", "884", 4),
    DEVICE_RUNTIME_ROWS("EventCreateWithFlags", "84", 4),
    DEVICE_RUNTIME_ROWS("EventRecord", "88", 4),
    DEVICE_RUNTIME_ROWS("EventDestroy", "8", 4),
    DEVICE_RUNTIME_ROWS("Malloc", "88", 4),
    DEVICE_RUNTIME_ROWS("Free", "8", 4),
    DEVICE_RUNTIME_ROWS("MemcpyAsync", "88848", 4),
    DEVICE_RUNTIME_ROWS("MemsetAsync", "8488", 4),
    DEVICE_RUNTIME_ROWS("GetDevice", "8", 4),
    DEVICE_RUNTIME_ROWS("DeviceGetAttribute", "844", 4),
    DEVICE_RUNTIME_ROWS("DeviceGetLimit", "84", 4),
    DEVICE_RUNTIME_ROWS("DeviceGetCacheConfig", "8", 4),
    DEVICE_RUNTIME_ROWS("DeviceGetSharedMemConfig", "8", 4),
    DEVICE_RUNTIME_ROWS("GetDeviceCount", "8", 4),
    DEVICE_RUNTIME_ROWS("RuntimeGetVersion", "8", 4),
    DEVICE_RUNTIME_ROWS("GetErrorName", "4", 8),
    DEVICE_RUNTIME_ROWS("GetErrorString", "4", 8),
    DEVICE_RUNTIME_ROWS("FuncGetAttributes", "88", 4),
    DEVICE_RUNTIME_ROWS("OccupancyMaxActiveBlocksPerMultiprocessor", "8848", 4),
    DEVICE_RUNTIME_ROWS("OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "88484", 4),
    DEVICE_RUNTIME_ROWS("GetParameterBuffer", "88", 8),
};
#undef DEVICE_RUNTIME_ROWS
constexpr unsigned first_argument = 4;
/// Upper half of the numbers that stand for these functions' addresses: no address of this machine's or of a GPU's.
constexpr std::uint32_t function_high = 0xfffe0000;

std::uint32_t function_low(std::size_t index) {
    return std::uint32_t(16 * (index + 1));
}

std::string parameter(char bytes, const std::string& name) {
    if (bytes == 'd') return ".param .align 4 .b8 " + name + "[12]";
    return ".param .b" + std::to_string(8 * (bytes - '0')) + " " + name;
}

/// Null if there is none of this name.
const ProvidedFunction* function_named(std::string_view name) {
    static const auto& by_name = *[] { // modules have thousands of symbols
        auto* map = new std::unordered_map<std::string_view, const ProvidedFunction*>;
        for (const ProvidedFunction& function : functions) map->emplace(function.name, &function);
        return map;
    }();
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
}

/// Those that the module's symbols name, in the order of the table.
std::set<const ProvidedFunction*> named_functions(const Cubin& cubin) {
    std::set<const ProvidedFunction*> named;
    for (const CubinSymbol& symbol : cubin.symbols)
        if (const ProvidedFunction* function = function_named(symbol.name)) named.insert(function);
    return named;
}

} // namespace

std::optional<std::uint64_t> Lifter::provided_address(std::string_view name) {
    const ProvidedFunction* const found = function_named(name);
    if (found == nullptr) return {};
    return std::uint64_t(function_high) << 32 | function_low(std::size_t(found - std::begin(functions)));
}

bool Lifter::is_left_to_runtime(const CubinSymbol& symbol) const {
    const ProvidedFunction* const function = function_named(symbol.name);
    if (function == nullptr || !function->is_library || symbol.section >= cubin_.sections.size())
        return symbol.section == 0;
    const std::vector<CubinRelocation>& relocations = cubin_.sections[symbol.section].relocations;
    return symbol.section == 0 || std::any_of(relocations.begin(), relocations.end(), [&](const auto& relocation) {
               const std::string_view name = cubin_.symbols[relocation.symbol].name;
               return name.substr(0, 15) == "__cuda_syscall_";
           });
}

std::string Lifter::provided_declarations(const Cubin& cubin) {
    std::string text;
    for (const ProvidedFunction* const function : named_functions(cubin)) {
        text += ".extern .func ";
        if (function->result != 0) text += "(.param .b" + std::to_string(8 * function->result) + " sass_result) ";
        text += std::string(function->name) + "(";
        for (std::size_t i = 0; i < function->parameters.size(); ++i)
            text += (i == 0 ? "" : ", ") + parameter(function->parameters[i], "sass_argument_" + std::to_string(i));
        text += ");\n";
    }
    return text;
}

void Lifter::call_provided(std::uint64_t address, const std::string& chosen) {
    const std::uint32_t number = std::uint32_t(address);
    if (address >> 32 != function_high || number == 0 || number % 16 != 0 ||
        number > function_low(std::size(functions) - 1))
        refuse_here("a call to an address that is not there");
    const ProvidedFunction& function = functions[number / 16 - 1];
    const auto names_it = [&](const CubinSymbol& symbol) { return symbol.name == function.name; };
    if (std::none_of(cubin_.symbols.begin(), cubin_.symbols.end(), names_it)) // else it is not declared
        refuse_here("a call to a function that the module does not name");
    std::vector<std::vector<std::string>> arguments; // words, or one pair
    unsigned at = first_argument;
    for (const char bytes : function.parameters) {
        std::vector<std::string>& words = arguments.emplace_back();
        if (bytes == '8') {
            at += at % 2;
            words.push_back(wide_text(pair_at(at)));
            at += 2;
        } else {
            for (unsigned i = 0; i < (bytes == 'd' ? 3 : 1); ++i) words.push_back(in_register(read_index(at++)));
        }
    }
    // The parameters' names live in a scope of their own.
    if (writes_) text_ += "\t{\n";
    std::string list;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const char bytes = function.parameters[i];
        const std::string type = bytes == 'd' ? ".b32" : ".b" + std::to_string(8 * (bytes - '0')),
                          name = "sass_call_" + std::to_string(i);
        emit(parameter(bytes, name));
        for (std::size_t word = 0; word < arguments[i].size(); ++word)
            emit("st.param" + type + " [" + name + "+" + std::to_string(4 * word) + "], " + arguments[i][word]);
        list += (i == 0 ? "" : ", ") + name;
    }
    const std::string type = ".b" + std::to_string(8 * function.result);
    if (function.result != 0) emit(".param " + type + " sass_call_result");
    const std::string call = "call " + std::string(function.result != 0 ? "(sass_call_result), " : "") +
                             std::string(function.name) + ", (" + list + ")";
    if (chosen.empty()) {
        emit_guarded(call);
    } else if (writes_) {
        text_ += "\t@" + chosen + " " + call + ";\n";
    }
    const std::string result = function.result == 8 ? wide_temporary() : temporary();
    if (function.result != 0) emit("ld.param" + type + " " + result + ", [sass_call_result]");
    if (writes_) text_ += "\t}\n";
    if (function.result == 0) return;
    if (chosen.empty()) {
        Operand target;
        target.kind = Operand::Kind::reg;
        target.index = first_argument;
        if (function.result == 8)
            write_pair(target, name_wide(result));
        else
            write(target, value_of(result));
        return;
    }
    // One of several: the others' lanes keep what they have.
    const Value low = function.result == 8 ? low_half(name_wide(result)) : value_of(result);
    const auto choose = [&](unsigned index, const Value& value) {
        const std::string kept = temporary();
        emit("selp.b32 " + kept + ", " + value.text + ", " + in_register(read_index(index)) + ", " + chosen);
        write_index(index, value_of(kept));
    };
    if (function.result == 8) {
        const Value high = high_half(name_wide(result));
        choose(first_argument + 1, high);
    }
    choose(first_argument, low);
}

/// LEPC: the address of code, which only returns use, and those are known by their call.
void Lifter::lepc(const Instruction& inst) {
    const std::uint64_t place = inst.operand_count > 1 ? std::uint64_t(inst.operands[1].value) : inst.address;
    write_pair(inst.operands[0], join(constant(std::uint32_t(place)), constant(std::uint32_t(place >> 32))));
}

void Lifter::call_absolute(const Instruction& inst) {
    const Condition also = condition(inst.operands[0]);
    if (!also.name.empty() || !also.value) refuse_here("a condition");
    const Operand& target = inst.operands[1];
    const unsigned index = index_of(target);
    if (index % 2 != 0) refuse_here("a pair at an odd register");
    const Value low = read_index(index), high = read_index(index + 1);
    if (low.constant && high.constant) {
        const std::uint64_t address = std::uint64_t(*high.constant) << 32 | *low.constant;
        for (const ProvidedFunction& function : functions)
            if (provided_address(function.name) == address) {
                call_provided(address, {});
                return;
            }
        if (!std::binary_search(absolute_functions_.begin(), absolute_functions_.end(), address))
            refuse_here("a function at no known place");
    }
    if (!is_unguarded(inst)) refuse_here("a condition");
    const std::string where = wide_text(pair_at(index));
    if (!absolute_functions_.empty()) {
        const std::string low_half = temporary();
        emit("cvt.u32.u64 " + low_half + ", " + where);
        jump_by_register(low_half, 0, absolute_functions_.size(), {});
    }
    std::string none = "%ptrue";
    std::vector<std::pair<std::uint64_t, std::string>> chosen;
    for (const ProvidedFunction* const function : named_functions(cubin_)) {
        const std::uint64_t address = *provided_address(function->name);
        const std::string same = predicate_temporary(), rest = predicate_temporary();
        emit("setp.eq.b64 " + same + ", " + where + ", " + hexadecimal(address));
        emit("setp.ne.and.b64 " + rest + ", " + where + ", " + hexadecimal(address) + ", " + none);
        none = rest;
        chosen.emplace_back(address, same);
    }
    if (writes_) text_ += "\t@" + none + " trap;\n";
    for (const auto& [address, predicate] : chosen) call_provided(address, predicate);
}

/// Of one of the kernel's own functions: as BRX, but a lane whose register names none of them traps.
void Lifter::call_indexed(const Instruction& inst) {
    const Condition also = condition(inst.operands[0]);
    if (!also.name.empty() || !also.value || !is_unguarded(inst)) refuse_here("a condition");
    const Operand& target = inst.operands[1];
    jump_by_register(read_index(target.index).text, target.value, pointed_functions_.size(), {});
    emit("trap");
    if (pointed_functions_.empty()) emit("exit"); // nothing is behind
}

} // namespace ptarmigan::sass
