// SPDX-License-Identifier: Apache-2.0

package plugin

import "fmt"

// Registration is how a native plugin is made by name.
type Registration struct {
	Name string
	// Type is any value of the plugin's type, which shows the interfaces that it implements; nil stands for what New
	// makes of the default arguments.
	Type Plugin
	// DefaultArgs returns upstream's default arguments, of the plugin's own type; nil for a plugin without arguments.
	DefaultArgs func() any
	// New makes the plugin. Nil args mean the defaults. The error says what is wrong with the arguments.
	New func(args any) (Plugin, error)
}

// WithoutArgs registers a plugin that takes no arguments. Profiles share p.
func WithoutArgs(p Plugin) Registration {
	return Registration{Name: p.Name(), Type: p, New: func(args any) (Plugin, error) {
		if args != nil {
			return nil, fmt.Errorf("%s: takes no arguments, got %T", p.Name(), args)
		}
		return p, nil
	}}
}

// WithArgs registers a plugin with arguments of type A. make checks the arguments.
func WithArgs[A any, P Plugin](name string, defaults func() A, make func(A) (P, error)) Registration {
	var kind P
	return Registration{
		Name:        name,
		Type:        kind,
		DefaultArgs: func() any { return defaults() },
		New: func(args any) (Plugin, error) {
			if args == nil {
				args = defaults()
			}
			typed, ok := args.(A)
			if !ok {
				return nil, fmt.Errorf("%s: want arguments of type %T, got %T", name, typed, args)
			}
			p, err := make(typed)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
	}
}

// Enabled is a plugin of a profile with the weight of its score.
type Enabled struct {
	Name   string
	Weight int64 // 0 where the plugin does not score
}
