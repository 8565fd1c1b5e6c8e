// SPDX-License-Identifier: Apache-2.0
// Environment variables: the table of env_variables.def and typed access to it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

enum class Env : unsigned {
#define PTM_ENV(id, name, fallback, option, accepted, meaning) id,
#include "runtime/base/env_variables.def"
#undef PTM_ENV
};

/// One row of env_variables.def.
struct EnvVariable {
    const char* name;
    const char* fallback;
    const char* option;   ///< of `ptarmigan exec`
    const char* accepted; ///< as at the top of env_variables.def
    const char* meaning;
};

/// All variables, in the order of Env.
std::span<const EnvVariable> env_variables();

/// The variable's value, or its default if it is unset, empty or nothing that the variable takes. Reads the
/// environment at each call.
std::string env_text(Env variable);
/// True if the variable is set in the environment, even to nothing.
bool env_is_set(Env variable);
/// True if it is set to something that it takes, not to nothing.
bool env_is_given(Env variable);
/// env_text() as a whole number with an optional K, M, G or T suffix (powers of 1024). Nothing if it is empty.
std::optional<std::uint64_t> env_number(Env variable);
/// env_text() as seconds, at most a billion. Nothing if it is empty.
std::optional<double> env_seconds(Env variable);
/// "1", "on", "yes" or "true".
bool env_flag(Env variable);

/// What the variable takes, if it doesn't take `value` ("one of auto, masks, pcs"); empty if it does. The empty
/// value means the default and is always taken.
std::string env_problem(Env variable, std::string_view value);
/// A line for each variable of the environment whose name begins like ours and is none of ours: "PTARMIGAN_WORKER is no
/// setting (did you mean 'PTARMIGAN_WORKERS'?)". PTARMIGAN_TEST_... is left to tests.
std::vector<std::string> unknown_settings();
/// Names on stderr every variable that is set to something it doesn't take, or that is misspelt, once per process; such
/// a value counts as the default.
void report_env_problems();

} // namespace ptarmigan::runtime
