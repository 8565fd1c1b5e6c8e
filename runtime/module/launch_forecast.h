// SPDX-License-Identifier: Apache-2.0
// Which kernels of a text are likely to be launched behind one that was: by their names and by what was launched so
// far. A wrong forecast costs CPU time, nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

/// Libraries' templates are instantiated algorithm by algorithm, so programs launch kernels in the order of the text,
/// more or less, but leave some out:
/// * Of instances that differ only in the width of an integer (cub's and thrust's offsets: the number of elements
///   decides while the program runs) the first one is launched, or in programs with large data the others.
/// * Instances of a function that was left out before (sorts of what fits one block) are so again.
/// Not thread-safe.
class LaunchForecast {
public:
    /// `names`: of all kernels, mangled as nvcc does it, in the order of the text.
    explicit LaunchForecast(const std::vector<std::string>& names);

    /// Kernel `index` is launched for the first time.
    void note_launch(std::uint32_t index);
    /// Whether a launch is to be expected of kernel `index`, once the text has come to it.
    bool is_likely(std::uint32_t index) const;
    /// Up to `most` kernels behind `index` that are, nearest first. Launched ones count, but are not among them.
    std::vector<std::uint32_t> behind(std::uint32_t index, std::uint32_t most) const;

private:
    struct Kernel {
        std::uint32_t family = 0;     ///< in families_
        std::uint32_t first_twin = 0; ///< the first kernel of the text that differs in widths only, or itself
        bool has_twins = false;
        bool launched = false, passed_over = false;
    };
    /// Instances of one function template.
    struct Family {
        std::uint32_t launched = 0, passed_over = 0;
    };

    std::vector<Kernel> kernels_;
    std::vector<Family> families_;
    std::uint32_t first_twins_launched_ = 0, later_twins_launched_ = 0;
};

/// A mangled name up to its function's template arguments: what instances of one template have in common.
std::string_view family_name(std::string_view mangled);
/// A mangled name in which integers of all widths and signs look alike.
std::string name_without_widths(std::string_view mangled);

} // namespace ptarmigan::runtime
