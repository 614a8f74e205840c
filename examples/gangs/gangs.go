// SPDX-License-Identifier: Apache-2.0

// Package gangs owns one example of each way to declare a gang; docs/gangs.md explains them, and kumiki up --gangs
// applies them.
package gangs

import "embed"

// Files are the manifests, in the order of their names.
//
//go:embed *.yaml
var Files embed.FS

// Settings switch all declarations on: the arguments of pluginConfig Kumiki, in YAML.
const Settings = `gangs: {podgroup: "On", annotation: "On", sigs: "On", volcano: "On", pfnet: {}}`
