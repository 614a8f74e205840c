// SPDX-License-Identifier: Apache-2.0

// Package spdx owns the form of bills of materials: SPDX 2.3, as JSON. The same input gives the same bytes.
package spdx
