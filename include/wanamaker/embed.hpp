// What a host program includes to run a surrogate, a gate or a gated MLP on its own buffers. Needs
// the standard library and a backend (backend/eigen.hpp, or the host's own); layers in files are in
// embed/artefact.hpp, which needs nlohmann/json too. docs/embedding.md shows both.
#pragma once

#include "wanamaker/embed/foreign_buffers.hpp"
#include "wanamaker/embed/foreign_mlp.hpp"
#include "wanamaker/embed/workspace_need.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/linear_gate.hpp"
