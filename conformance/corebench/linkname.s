// SPDX-License-Identifier: Apache-2.0

// Empty: an assembly file lets the package declare functions without bodies,
// which go:linkname needs.
