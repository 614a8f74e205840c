// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// dropIn is the name of the configuration without a file.
const dropIn = "drop-in"

// file returns a preset, or the default configuration, with other resources than CPU and memory in its weights; nil
// leaves them as they are.
func file(name string, resources []v1.ResourceName) ([]byte, error) {
	if name == dropIn {
		return []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"), nil
	}
	if more := strategies[name]; more != "" {
		text, err := file(dropIn, nil)
		return append(text, more...), err
	}
	text, err := config.Preset(name)
	if err != nil || resources == nil {
		return text, err
	}
	var list []string
	for _, r := range resources {
		list = append(list, fmt.Sprintf("{name: %s, weight: 1}", r))
	}
	const usual = "resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]"
	out := strings.ReplaceAll(string(text), usual, "resources: ["+strings.Join(list, ", ")+"]")
	if slices.Contains(resources, quality.GPUMilli) {
		gpus := fmt.Sprintf("resources: [{name: %s, weight: 4}]", quality.GPUMilli)
		out = strings.Replace(out, "resources: []", gpus, 1)
	}
	return []byte(out), nil
}

// stepper returns how to make an engine with a configuration file and a seed. last is a filter that it runs after its
// others; nil for none.
func stepper(text []byte, seed uint64) (func(last plugin.Filter) sim.Stepper, error) {
	resolved, err := config.Parse(text)
	if err != nil {
		return nil, err
	}
	return func(last plugin.Filter) sim.Stepper {
		made, err := app.EngineConfig(resolved)
		if err != nil {
			panic(err) // the file was parsed
		}
		made.Seed = seed
		if last != nil {
			made.Profiles[0].Filters = append(made.Profiles[0].Filters, last)
		}
		return engine.New(made)
	}, nil
}

// placer returns how to make a scheduler by the name of its configuration, with resources in its weights as file has
// them, and a seed.
func (o *options) placer(name string, resources []v1.ResourceName, seed int64) quality.NewPlacer {
	return func(nodes []*v1.Node, last *quality.Devices) (quality.Placer, error) {
		if name == upstream {
			return o.startUpstream(nodes, last != nil, seed)
		}
		text, err := file(name, resources)
		if err != nil {
			return nil, err
		}
		make, err := stepper(text, uint64(seed))
		if err != nil {
			return nil, err
		}
		var filter plugin.Filter // not an interface with a nil pointer
		if last != nil {
			filter = last
		}
		return quality.NewPlacement(make(filter), nodes), nil
	}
}
