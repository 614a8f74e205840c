// SPDX-License-Identifier: Apache-2.0

package basic

// DefaultBinder stands for the bind through the API server's binding subresource. It has a name because profiles
// enable and disable it by that; the bind itself is an effect of the engine.
type DefaultBinder struct{}

// DefaultBinderName is its name in configurations.
const DefaultBinderName = "DefaultBinder"

// Name is DefaultBinderName.
func (DefaultBinder) Name() string { return DefaultBinderName }
