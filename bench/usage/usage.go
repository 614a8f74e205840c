// SPDX-License-Identifier: Apache-2.0

package usage

import "fmt"

// mistake is a mistake on the command line, as opposed to a measurement that failed. The program that runs the command finds it by
// its method Usage.
type mistake struct{ error }

// Usage marks the error.
func (mistake) Usage() {}

// Unwrap returns the error as it was before it was marked.
func (u mistake) Unwrap() error { return u.error }

// Wrap marks an error as a mistake on the command line.
func Wrap(err error) error { return mistake{err} }

// Errorf is fmt.Errorf for a mistake on the command line.
func Errorf(format string, args ...any) error { return Wrap(fmt.Errorf(format, args...)) }
