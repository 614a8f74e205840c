// SPDX-License-Identifier: Apache-2.0

package bench

import "fmt"

// usageError is a mistake on the command line. Whoever ends the program can tell it from a measurement that went wrong.
type usageError struct{ error }

// Usage marks the error.
func (usageError) Usage() {}

func (u usageError) Unwrap() error { return u.error }

func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
