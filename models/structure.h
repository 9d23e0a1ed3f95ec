#pragma once
// Whether the parts of a model that is being built name each other rightly (builder.cpp).
#include <string>
#include <vector>

#include "models/model.h"
#include "models/model_error.h"

namespace backdrive {

/// As messages have names.
std::string quoted(const std::string& name);

// They add what is wrong. O(bodies + joints + shapes + couplings + contacts).
void check_names(ModelMistakes& mistakes, const Model& model);
/// Of joints and shapes to bodies and meshes; `driven`: which joints have a drive.
void check_references(ModelMistakes& mistakes, const Model& model, const std::vector<bool>& driven);
void check_contacts(ModelMistakes& mistakes, const Model& model);

}  // namespace backdrive
