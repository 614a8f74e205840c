// SPDX-License-Identifier: Apache-2.0

// Package pack owns the form of archives and OCI image layouts, which depends on their content alone: the same content
// gives the same bytes on every machine.
package pack
