// SPDX-License-Identifier: Apache-2.0

// Empty: it lets functions be declared without a body.
