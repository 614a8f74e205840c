// SPDX-License-Identifier: Apache-2.0

// Package usage owns the error that marks a mistake on the command line, as opposed to a measurement that failed.
package usage
