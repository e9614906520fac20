// What calibrate prints.
#pragma once

#include <string>

#include "trainer/calibrate/calibration.h"

namespace shardscope::trainer::cli {

// `file`: the model file.
std::string calibration_table(const calibrate::Calibration& fitted, const std::string& file);
std::string calibration_json(const calibrate::Calibration& fitted, const std::string& file);

}  // namespace shardscope::trainer::cli
