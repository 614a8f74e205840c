// SPDX-License-Identifier: Apache-2.0

// Package plugins owns the list of the plugins of sigs.k8s.io/scheduler-plugins that compile against the matched
// release, for two binaries of one source: kube-scheduler and kumiki. It is compiled against a copy of that module with
// the patches of testdata/patches, which tools/plugins.sh makes; module conformance/thirdparty is outside of go.work.
package plugins

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // registers the types of arguments
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
	"sigs.k8s.io/scheduler-plugins/pkg/networkaware/networkoverhead"
	"sigs.k8s.io/scheduler-plugins/pkg/networkaware/topologicalsort"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesources"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"
	"sigs.k8s.io/scheduler-plugins/pkg/podstate"
	"sigs.k8s.io/scheduler-plugins/pkg/qos"
	"sigs.k8s.io/scheduler-plugins/pkg/sysched"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/loadvariationriskbalancing"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/lowriskovercommitment"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/peaks"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/targetloadpacking"
)

// All returns the factories of the plugins: name -> factory.
func All() map[string]runtime.PluginFactory {
	return map[string]runtime.PluginFactory{
		coscheduling.Name:               coscheduling.New,
		networkoverhead.Name:            networkoverhead.New,
		topologicalsort.Name:            topologicalsort.New,
		noderesources.AllocatableName:   noderesources.NewAllocatable,
		noderesourcetopology.Name:       noderesourcetopology.New,
		podstate.Name:                   podstate.New,
		qos.Name:                        qos.New,
		sysched.Name:                    sysched.New,
		loadvariationriskbalancing.Name: loadvariationriskbalancing.New,
		lowriskovercommitment.Name:      lowriskovercommitment.New,
		peaks.Name:                      peaks.New,
		targetloadpacking.Name:          targetloadpacking.New,
	}
}
