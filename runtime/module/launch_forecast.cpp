// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/launch_forecast.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

namespace ptarmigan::runtime {
namespace {

/// Kernels that lie no further apart belong to one algorithm: what is between them was left out.
constexpr std::uint32_t algorithm_length = 6;

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

} // namespace

std::string_view family_name(std::string_view mangled) {
    if (!mangled.starts_with("_Z")) return mangled;
    std::size_t end = mangled.starts_with("_ZN") ? 3 : 2;
    while (end < mangled.size() && is_digit(mangled[end])) { // the length of an identifier, and the identifier
        std::size_t length = 0;
        while (end < mangled.size() && is_digit(mangled[end]) && length <= mangled.size())
            length = length * 10 + std::size_t(mangled[end++] - '0');
        end = std::min(mangled.size(), end + length);
    }
    return mangled.substr(0, end);
}

std::string name_without_widths(std::string_view mangled) {
    std::string name(mangled);
    for (char& c : name)
        if (c == 'j' || c == 'l' || c == 'm' || c == 'x' || c == 'y') c = 'i'; // unsigned int, long, ... long long
    return name;
}

LaunchForecast::LaunchForecast(const std::vector<std::string>& names) : kernels_(names.size()) {
    std::unordered_map<std::string_view, std::uint32_t> families;
    std::unordered_map<std::string, std::uint32_t> twins;
    for (std::uint32_t i = 0; i < names.size(); ++i) {
        Kernel& kernel = kernels_[i];
        kernel.family = families.try_emplace(family_name(names[i]), std::uint32_t(families.size())).first->second;
        kernel.first_twin = twins.try_emplace(name_without_widths(names[i]), i).first->second;
        if (kernel.first_twin != i) kernel.has_twins = kernels_[kernel.first_twin].has_twins = true;
    }
    families_.resize(families.size());
}

void LaunchForecast::note_launch(std::uint32_t index) {
    Kernel& kernel = kernels_.at(index);
    if (kernel.launched) return;
    kernel.launched = true;
    ++families_[kernel.family].launched;
    if (kernel.first_twin != index && !kernels_[kernel.first_twin].launched) ++later_twins_launched_;
    if (kernel.has_twins && kernel.first_twin == index) ++first_twins_launched_;
    std::uint32_t before = index;
    while (before > 0 && index - before < algorithm_length && !kernels_[before - 1].launched) --before;
    if (before == 0 || !kernels_[before - 1].launched) return;
    for (; before < index; ++before) {
        Kernel& between = kernels_[before];
        if (!between.passed_over) ++families_[between.family].passed_over;
        between.passed_over = true;
    }
}

bool LaunchForecast::is_likely(std::uint32_t index) const {
    const Kernel& kernel = kernels_.at(index);
    const Family& family = families_[kernel.family];
    if (family.launched == 0 && family.passed_over > 0) return false;
    const bool later_twins = later_twins_launched_ > first_twins_launched_;
    return !kernel.has_twins || (kernel.first_twin == index) != later_twins;
}

std::vector<std::uint32_t> LaunchForecast::behind(std::uint32_t index, std::uint32_t most) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t next = index + 1; next < kernels_.size() && most > 0; ++next) {
        if (!kernels_[next].launched && !is_likely(next)) continue;
        --most;
        if (!kernels_[next].launched) found.push_back(next);
    }
    return found;
}

} // namespace ptarmigan::runtime
