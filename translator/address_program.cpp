// SPDX-License-Identifier: Apache-2.0
#include "translator/address_program.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using Step = AddressProgram::Step;

/// Of one thread: a loop's later rounds tell nothing new.
constexpr unsigned most_steps = 2000;
constexpr std::size_t most_accesses = 6;

} // namespace

bool is_consistent(const AddressProgram& program) {
    return std::all_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
        const LaunchNumber& number = step.number;
        const bool is_component =
            number.kind >= LaunchNumber::Kind::grid_extent && number.kind <= LaunchNumber::Kind::thread_index;
        switch (step.kind) {
        case Step::Kind::number:
            if (number.kind > LaunchNumber::Kind::extend || number.bits == 0 || number.bits > 64) return false;
            if (is_component && (number.value < 0 || number.value > 2)) return false;
            if (is_arithmetic(number.kind) && (number.a >= program.places || number.b >= program.places)) return false;
            return step.result < program.places;
        case Step::Kind::move: return number.a < program.places && step.result < program.places;
        case Step::Kind::access: return number.a < program.places;
        case Step::Kind::branch: return number.a < program.places && step.result < program.steps.size();
        case Step::Kind::jump: return step.result < program.steps.size();
        case Step::Kind::end: return true;
        default: return false;
        }
    });
}

AddressFinder::AddressFinder(const AddressProgram& program, std::span<const std::uint8_t> parameters)
    : program_(program), parameters_(parameters), values_(program.places), known_(program.places) {}

const std::vector<KnownAddress>& AddressFinder::of(const ProgramThread& thread) {
    using Kind = LaunchNumber::Kind;
    found_.clear();
    std::fill(known_.begin(), known_.end(), std::uint8_t{0});
    const auto source = [&](const LaunchNumber& number) -> std::int64_t {
        const auto component = static_cast<std::size_t>(number.value);
        switch (number.kind) {
        case Kind::constant: return number.value;
        case Kind::parameter: return parameter(number, parameters_);
        case Kind::grid_extent: return thread.extents[component];
        case Kind::cta_index: return thread.cta[component];
        default: return thread.thread[component];
        }
    };
    std::size_t at = 0;
    for (unsigned taken = 0; taken < most_steps && at < program_.steps.size(); ++taken) {
        const Step& step = program_.steps[at++];
        const LaunchNumber& number = step.number;
        switch (step.kind) {
        case Step::Kind::number:
            if (is_arithmetic(number.kind)) {
                known_[step.result] = known_[number.a] & known_[number.b];
                values_[step.result] = combine(number, values_[number.a], values_[number.b]);
            } else {
                known_[step.result] = 1;
                values_[step.result] = source(number);
            }
            break;
        case Step::Kind::move:
            known_[step.result] = known_[number.a];
            values_[step.result] = values_[number.a];
            break;
        case Step::Kind::access: {
            const auto step_number = static_cast<std::uint32_t>(at - 1);
            const bool is_new = std::none_of(found_.begin(), found_.end(),
                                             [&](const KnownAddress& each) { return each.step == step_number; });
            if (!known_[number.a] || !is_new) break;
            found_.push_back({step_number, static_cast<std::uint32_t>(number.value), values_[number.a]});
            if (found_.size() == most_accesses) return found_;
            break;
        }
        case Step::Kind::branch:
            if (!known_[number.a]) return found_;
            if (values_[number.a] & 1) at = step.result;
            break;
        case Step::Kind::jump: at = step.result; break;
        default: return found_;
        }
    }
    return found_;
}

} // namespace ptarmigan::translator
