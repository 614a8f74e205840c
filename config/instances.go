// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Instances is how several instances share the cluster.
type Instances struct {
	Mode Sharing
	// Local is the number of planners in this process, 1 to MaxLocal; 0 if Mode is Off.
	Local int
	// Lending says which units planners decide; empty if Mode is Off.
	Lending Lending
}

// Sharing says whether several instances share the cluster.
type Sharing string

// The values of Sharing.
const (
	// NotShared is a scheduler that decides everything itself. It is the default.
	NotShared Sharing = "Off"
	// Shared is an arbiter, which has the ledger of capacity, and planners that propose placements to it.
	Shared Sharing = "Shared"
)

// UnmarshalJSON accepts false too: YAML reads an unquoted Off as a boolean. Other values are reported later.
func (s *Sharing) UnmarshalJSON(raw []byte) error {
	if string(raw) == "false" {
		*s = NotShared
		return nil
	}
	return json.Unmarshal(raw, (*string)(s))
}

// Sharings returns the values of Sharing.
func Sharings() []Sharing { return []Sharing{NotShared, Shared} }

// Lending says which units planners decide.
type Lending string

// The values of Lending.
const (
	// LendAuto lends units whose decisions call extenders, and everything while the scheduling loop is busy. It is the
	// default.
	LendAuto Lending = "Auto"
	// LendAlways lends every unit that a planner can decide.
	LendAlways Lending = "Always"
	// LendNever lends nothing.
	LendNever Lending = "Never"
)

// Lendings returns the values of Lending.
func Lendings() []Lending { return []Lending{LendAuto, LendAlways, LendNever} }

// The bounds of Instances.Local. There are at most 64 members, of which the arbiter is one.
const (
	DefaultLocal = 4
	MaxLocal     = 63
)

// DefaultInstances returns the settings of a scheduler that decides everything itself.
func DefaultInstances() Instances { return Instances{Mode: NotShared} }

// InstancesArgs is the form of Instances in a file.
type InstancesArgs struct {
	Mode    *Sharing `json:"mode,omitempty"`
	Local   *int32   `json:"local,omitempty"`
	Lending *Lending `json:"lending,omitempty"`
}

// String returns the settings for messages.
func (s Instances) String() string {
	if s.Mode == NotShared {
		return string(s.Mode)
	}
	return fmt.Sprintf("mode %s, local %d, lending %s", s.Mode, s.Local, s.Lending)
}

// instances resolves how several instances share the cluster.
func (r *report) instances(path string, args *InstancesArgs) Instances {
	out := Instances{Mode: orDefault(args.Mode, NotShared)}
	if !slices.Contains(Sharings(), out.Mode) {
		r.add(path+".mode", "must be one of %v, got %q", Sharings(), out.Mode)
		return DefaultInstances()
	}
	local, lending := orDefault(args.Local, DefaultLocal), orDefault(args.Lending, LendAuto)
	if local < 1 || local > MaxLocal {
		r.add(path+".local", "must be at least 1 and at most %d, got %d", MaxLocal, local)
	}
	if !slices.Contains(Lendings(), lending) {
		r.add(path+".lending", "must be one of %v, got %q", Lendings(), lending)
	}
	if out.Mode == Shared {
		out.Local, out.Lending = int(local), lending
		return out
	}
	if args.Local != nil {
		r.add(path+".local", "only allowed with mode %s, it is %s", Shared, out.Mode)
	}
	if args.Lending != nil {
		r.add(path+".lending", "only allowed with mode %s, it is %s", Shared, out.Mode)
	}
	return out
}

// checkInstances adds the problems of settings that exclude each other.
func (r *report) checkInstances(path string, c *Resolved) {
	if c.Kumiki.Instances.Mode != Shared {
		return
	}
	if c.Kumiki.Cycle == InSessions {
		r.add(path, "mode %s is not allowed with cycle %s: sessions try all units against one snapshot, in one engine",
			Shared, InSessions)
	}
	for i, p := range c.Profiles {
		if name := r.catalog.framework(p); name != "" {
			r.add(path, "mode %s is not allowed with plugin %s of kube-scheduler's framework, which profiles[%d] "+
				"enables: local planners do not have the API objects that it reads", Shared, name, i)
		}
	}
}

// framework returns the first plugin of kube-scheduler's framework that a profile enables, by name; empty for none.
func (c Catalog) framework(p Profile) string {
	var names []string
	for _, enabled := range p.Enabled { // order: sorted below
		names = append(names, enabled...)
	}
	slices.Sort(names)
	i := slices.IndexFunc(names, func(name string) bool {
		p, custom := c.find(name)
		return custom && p.Framework
	})
	if i < 0 {
		return ""
	}
	return names[i]
}

func (s Instances) wire() *InstancesArgs {
	local := int32(s.Local)
	return &InstancesArgs{Mode: &s.Mode, Local: &local, Lending: &s.Lending}
}
