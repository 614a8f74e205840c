// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	res "github.com/kumiki-scheduler/kumiki/core/resource"
)

// form is a canonical encoding: equal values, and no others, have equal forms, and an absent value differs from an
// empty one. Fields that most pods have are encoded by hand, the rest as JSON, because each event of a pod looks its
// spec up by form.
type form []byte

func (f form) number(v int64) form { return binary.AppendVarint(f, v) }

func (f form) text(s string) form {
	f = f.number(int64(len(s)))
	return append(f, s...)
}

// flag writes a bool. The parameter is the value that is encoded; it selects no behaviour.
func (f form) flag(b bool) form {
	if b {
		return f.number(1)
	}
	return f.number(0)
}

// absent writes, in place of a length, that a list or map is absent.
func (f form) absent() form { return f.number(-1) }

// length writes the length of a list, or that it is absent.
func length[T any](f form, list []T) form {
	if list == nil {
		return f.absent()
	}
	return f.number(int64(len(list)))
}

func (f form) texts(list []string) form {
	f = length(f, list)
	for _, s := range list {
		f = f.text(s)
	}
	return f
}

func (f form) pairs(m map[string]string) form {
	if m == nil {
		return f.absent()
	}
	f = f.number(int64(len(m)))
	keys := make([]string, 0, 16)
	for k := range m { // order: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		f = f.text(k)
		f = f.text(m[k])
	}
	return f
}

func (f form) amounts(a *res.Amounts) form {
	for _, v := range [...]int64{a.MilliCPU, a.Memory, a.Ephemeral, a.Pods} {
		f = f.number(v)
	}
	f = length(f, a.Scalars)
	for _, sc := range a.Scalars {
		f = f.text(string(sc.Name))
		f = f.number(sc.Value)
	}
	return f
}

func (f form) tolerations(list []v1.Toleration) form {
	f = length(f, list)
	for i := range list {
		t := &list[i]
		f = f.text(t.Key)
		f = f.text(string(t.Operator))
		f = f.text(t.Value)
		f = f.text(string(t.Effect))
		if f = f.flag(t.TolerationSeconds != nil); t.TolerationSeconds != nil {
			f = f.number(*t.TolerationSeconds)
		}
	}
	return f
}

func (f form) ports(list []cluster.HostPort) form {
	f = length(f, list)
	for _, p := range list {
		f = f.text(p.IP)
		f = f.text(string(p.Protocol))
		f = f.number(int64(p.Port))
	}
	return f
}

// optional writes what a pointer points to: a field that few pods have.
func optional[T any](f form, v *T) form {
	if v == nil {
		return f.flag(false)
	}
	return f.flag(true).json(v)
}

// optionalList writes a list that few pods have.
func optionalList[T any](f form, list []T) form {
	if list == nil {
		return f.flag(false)
	}
	return f.flag(true).json(list)
}

func (f form) json(v any) form {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("form of %T: %v", v, err)) // plain data always marshals
	}
	f = f.text(string(raw))
	return f
}

// spec writes all fields but those that Intake.Share sets.
func (f form) spec(s *cluster.PodSpec) form {
	f = f.text(s.SchedulerName)
	f = f.number(int64(s.Priority))
	f = f.flag(s.NeverPreempts)
	f = f.pairs(s.Labels)
	f = f.text(s.NodeName)
	f = f.pairs(s.NodeSelector)
	f = optional(f, s.Required)
	f = optionalList(f, s.Preferred)
	f = f.tolerations(s.Tolerations)
	f = f.ports(s.Ports)
	f = f.texts(s.Gates)
	f = f.texts(s.Images)
	f = f.text(s.Controller.APIVersion)
	f = f.text(s.Controller.Kind)
	f = f.text(s.Controller.Name)
	f = optionalList(f, s.Spread)
	f = optional(f, s.PodAffinity)
	f = optional(f, s.PodAntiAffinity)
	f = optionalList(f, s.Volumes)
	f = optional(f, s.Devices)
	f = f.texts(s.Features)
	f = f.text(s.FeaturesErr)
	f = f.amounts(&s.Request)
	f = f.amounts(&s.Held)
	f = f.amounts(&s.Scored)
	for _, v := range [...]int64{s.HeldNonZero[0], s.HeldNonZero[1], s.ScoreNonZero[0], s.ScoreNonZero[1]} {
		f = f.number(v)
	}
	return f
}
