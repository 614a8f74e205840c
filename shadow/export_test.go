// SPDX-License-Identifier: Apache-2.0

package shadow

// MaxDoubts, MaxExamples and MaxReasons are the bounds of what is kept.
const (
	MaxDoubts   = maxDoubts
	MaxExamples = maxExamples
	MaxReasons  = maxReasons
)
