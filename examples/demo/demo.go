// SPDX-License-Identifier: Apache-2.0

// Package demo owns the workload that `kumiki up` applies, as files that kubectl can apply too.
package demo

import "embed"

// Files are the manifests, in the order of their names.
//
//go:embed *.yaml
var Files embed.FS
