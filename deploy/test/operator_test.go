// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// TestTheOperatorReadsItsObjects: with the types of the Prometheus operator, taking no field that it does not know; and the
// monitor finds the Service and its port. It catches a field with a spelling of its own, which the API server would drop in
// silence, and a label of the Service that was changed (nothing would be scraped, and no alert would say so but KumikiDown).
func TestTheOperatorReadsItsObjects(t *testing.T) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), monitored(t))
	if err != nil {
		t.Fatal(err)
	}
	var monitor monitoringv1.ServiceMonitor
	var rules monitoringv1.PrometheusRule
	var service struct {
		Metadata struct {
			Namespace string
			Labels    map[string]string
		}
		Spec struct{ Ports []struct{ Name string } }
	}
	for _, r := range made.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		into := map[string]any{"ServiceMonitor": &monitor, "PrometheusRule": &rules}[r.GetKind()]
		if into == nil {
			continue
		}
		unknown, err := json.UnmarshalStrict(text, into)
		if err != nil || len(unknown) > 0 {
			t.Errorf("%s: %v %v", r.GetKind(), err, unknown)
		}
	}
	for _, r := range made.Resources() {
		if r.GetKind() == "Service" {
			if err := yaml.Unmarshal([]byte(r.MustYaml()), &service); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(rules.Spec.Groups) != 1 || len(rules.Spec.Groups[0].Rules) < 12 || rules.Spec.Groups[0].Rules[0].For == nil {
		t.Errorf("the operator reads %+v", rules.Spec)
	}
	if len(monitor.Spec.Endpoints) != 1 || len(service.Spec.Ports) != 1 {
		t.Fatalf("the operator reads %+v about %+v", monitor.Spec, service)
	}
	e := monitor.Spec.Endpoints[0]
	if e.Port != service.Spec.Ports[0].Name || e.Scheme == nil || !strings.EqualFold(string(*e.Scheme), "https") || e.TLSConfig == nil || *e.TLSConfig.InsecureSkipVerify != true {
		t.Errorf("the endpoint is %+v, the Service has the ports %+v", e, service.Spec.Ports)
	}
	for k, v := range monitor.Spec.Selector.MatchLabels {
		if service.Metadata.Labels[k] != v || monitor.Namespace != service.Metadata.Namespace {
			t.Errorf("the monitor in %s wants %s=%s, the Service in %s has %v", monitor.Namespace, k, v, service.Metadata.Namespace, service.Metadata.Labels)
		}
	}
}
