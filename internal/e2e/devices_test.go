// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gpu = "gpu.example.com"

// deviceClass is the class SCENARIO, of all devices of a driver.
func deviceClass(more string) string {
	return `- {kind: DeviceClass, name: SCENARIO, spec: {selectors: [{cel: {expression: 'device.driver == "` + gpu + `"'}}]` + more + "}}\n"
}

// claimed is a template or a claim that requests devices of the class SCENARIO.
func claimed(kind, name, request string) string {
	spec := `{devices: {requests: [` + request + `]}}`
	if kind == "ResourceClaimTemplate" {
		spec = `{spec: ` + spec + `}`
	}
	return `- {kind: ` + kind + `, name: ` + name + `, spec: ` + spec + "}\n"
}

const oneDevice = `{name: r, exactly: {deviceClassName: SCENARIO}}`

func uses(pod, by, name, more string) string {
	return `- {kind: Pod, name: ` + pod + `, spec: {resourceClaims: [{name: c, ` + by + `: ` + name + `}], containers: [{resources: {claims: [{name: c}]}}]` + more + "}}\n"
}

const byTemplate, byName = "resourceClaimTemplateName", "resourceClaimName"

// slice is a ResourceSlice of node a-0 in a pool of its own.
func slice(name, devices, more string) string {
	return `- {kind: ResourceSlice, name: SCENARIO-` + name + `, spec: {driver: ` + gpu + `, nodeName: SCENARIO-a-0000, ` +
		`pool: {name: SCENARIO, generation: 1, resourceSliceCount: 1}, devices: [` + devices + `]` + more + "}}\n"
}

func deviceScenarios() []scenario {
	devices := func(n int, more string) [2]string {
		return [2]string{"a", fmt.Sprintf("{claimable: [{driver: %s, count: %d%s}]}", gpu, n, more)}
	}
	none := "!cannot allocate all claims"
	return []scenario{
		{"devices", [][2]string{devices(2, "")}, []step{
			{apply: deviceClass("") + claimed("ResourceClaimTemplate", "t", oneDevice) + uses("p0", byTemplate, "t", "") + uses("p1", byTemplate, "t", ""),
				want: map[string]string{"p0": "a-0", "p1": "a-0"}},
			{apply: uses("p2", byTemplate, "t", "") + `- {kind: Pod, name: plain}`, want: map[string]string{"p2": none, "plain": "a-0"}},
			{remove: []string{"Pod/p0"}, want: map[string]string{"p2": "a-0"}},
		}},
		{"devices-selected", [][2]string{devices(1, ", attributes: {model: small}"), {"b", "{claimable: [{driver: " + gpu + ", count: 1, attributes: {model: big}, capacity: {memory: 80Gi}}]}"}}, []step{
			{apply: deviceClass("") +
				claimed("ResourceClaim", "big", `{name: r, exactly: {deviceClassName: SCENARIO, selectors: [{cel: {expression: 'device.attributes["`+gpu+`"].model == "big" && device.capacity["`+gpu+`"].memory.compareTo(quantity("40Gi")) > 0'}}]}}`) +
				uses("p", byName, "big", ""), want: map[string]string{"p": "b-0"}},
			{apply: claimed("ResourceClaim", "huge", `{name: r, exactly: {deviceClassName: SCENARIO, selectors: [{cel: {expression: 'device.attributes["`+gpu+`"].model == "huge"'}}]}}`) +
				uses("never", byName, "huge", "") + `- {kind: Pod, name: others}`, want: map[string]string{"never": none, "others": "*"}},
		}},
		{"devices-shared", [][2]string{{"a", "{count: 2, claimable: [{driver: " + gpu + ", count: 1}]}"}}, []step{
			{apply: deviceClass("") + claimed("ResourceClaim", "c", oneDevice) + uses("p1", byName, "c", onHost("a-0001")), want: map[string]string{"p1": "a-1"}},
			{apply: uses("p2", byName, "c", "") + uses("cannot", byName, "c", onHost("a-0000")), want: map[string]string{"p2": "a-1", "cannot": "!resourceclaim not available on the node"}},
		}},
		{"devices-missing", [][2]string{devices(1, "")}, []step{
			{apply: deviceClass("") + uses("p", byName, "later", "") + `- {kind: Pod, name: others}`, want: map[string]string{"others": "a-0"}},
			{apply: claimed("ResourceClaim", "later", oneDevice), want: map[string]string{"p": "a-0"}},
		}},
		{"devices-alternatives", [][2]string{devices(2, ", attributes: {model: small}")}, []step{
			{apply: deviceClass("") + claimed("ResourceClaim", "c", `{name: r, firstAvailable: [`+
				`{name: big, deviceClassName: SCENARIO, selectors: [{cel: {expression: 'device.attributes["`+gpu+`"].model == "big"'}}]}, `+
				`{name: two-small, deviceClassName: SCENARIO, count: 2}]}`) + uses("p", byName, "c", ""), want: map[string]string{"p": "a-0"}},
			{do: allocatedTo("c", 2)},
		}},
		{"devices-admin", [][2]string{devices(1, "")}, []step{
			{do: func(ctx context.Context, s *stage) error {
				return patch("Namespace", s.scenario, `{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`)(ctx, s)
			}},
			{apply: deviceClass("") + claimed("ResourceClaim", "c", oneDevice) + uses("p", byName, "c", ""), want: map[string]string{"p": "a-0"}},
			{apply: claimed("ResourceClaim", "admin", `{name: r, exactly: {deviceClassName: SCENARIO, adminAccess: true}}`) + uses("watches", byName, "admin", ""),
				want: map[string]string{"watches": "a-0"}},
		}},
		{"devices-extended", [][2]string{devices(1, "")}, []step{
			{apply: deviceClass(", extendedResourceName: example.com/backed") + `- {kind: Pod, name: p, requests: {example.com/backed: "1"}}`,
				want: map[string]string{"p": "a-0"}, do: func(ctx context.Context, s *stage) error {
					return until(ctx, func() string {
						p, err := s.client.CoreV1().Pods(s.scenario).Get(ctx, "p", metav1.GetOptions{})
						if err != nil {
							return err.Error()
						}
						if is := p.Status.ExtendedResourceClaimStatus; is == nil || is.ResourceClaimName == "" || len(is.RequestMappings) != 1 {
							return fmt.Sprintf("the pod's status names %+v", is)
						}
						return ""
					})
				}},
			{apply: `- {kind: Pod, name: second, requests: {example.com/backed: "1"}}`, want: map[string]string{"second": "!0/"}},
			{remove: []string{"Pod/p"}, want: map[string]string{"second": "a-0"}},
		}},
		{"devices-tainted", [][2]string{{"a", "{}"}}, []step{
			{apply: deviceClass("") + slice("s", "{name: d, taints: [{key: broken, effect: NoSchedule}]}", "") +
				claimed("ResourceClaim", "c", oneDevice) + uses("p", byName, "c", ""), want: map[string]string{"p": none}},
			{apply: claimed("ResourceClaim", "bears", `{name: r, exactly: {deviceClassName: SCENARIO, tolerations: [{key: broken, operator: Exists}]}}`) + uses("bears", byName, "bears", ""),
				want: map[string]string{"bears": "a-0"}},
		}},
		{"devices-partitions", [][2]string{{"a", "{}"}}, []step{
			{apply: deviceClass("") +
				`- {kind: ResourceSlice, name: SCENARIO-counters, spec: {driver: ` + gpu + `, nodeName: SCENARIO-a-0000, pool: {name: SCENARIO, generation: 1, resourceSliceCount: 2}, sharedCounters: [{name: card, counters: {parts: {value: "2"}}}]}}
- {kind: ResourceSlice, name: SCENARIO-devices, spec: {driver: ` + gpu + `, nodeName: SCENARIO-a-0000, pool: {name: SCENARIO, generation: 1, resourceSliceCount: 2}, devices: [` +
				`{name: half-a, consumesCounters: [{counterSet: card, counters: {parts: {value: "1"}}}]}, {name: half-b, consumesCounters: [{counterSet: card, counters: {parts: {value: "1"}}}]}, ` +
				`{name: whole, consumesCounters: [{counterSet: card, counters: {parts: {value: "2"}}}]}]}}
` + claimed("ResourceClaimTemplate", "t", oneDevice) + uses("p0", byTemplate, "t", "") + uses("p1", byTemplate, "t", ""),
				want: map[string]string{"p0": "a-0", "p1": "a-0"}},
			{apply: uses("p2", byTemplate, "t", ""), want: map[string]string{"p2": none}},
		}},
		{"devices-consumed", [][2]string{{"a", "{}"}}, []step{
			{apply: deviceClass("") + slice("s", `{name: d, allowMultipleAllocations: true, capacity: {memory: {value: 8Gi, requestPolicy: {default: 1Gi, validRange: {min: 1Gi}}}}}`, "") +
				claimed("ResourceClaimTemplate", "t", `{name: r, exactly: {deviceClassName: SCENARIO, capacity: {requests: {memory: 4Gi}}}}`) +
				uses("p0", byTemplate, "t", "") + uses("p1", byTemplate, "t", ""), want: map[string]string{"p0": "a-0", "p1": "a-0"}},
			{apply: uses("p2", byTemplate, "t", ""), want: map[string]string{"p2": none}},
		}},
		{"devices-binding-conditions", [][2]string{{"a", "{}"}}, []step{
			{apply: deviceClass("") + slice("s", `{name: d, bindingConditions: [ready], bindingFailureConditions: [broken]}`, "") +
				claimed("ResourceClaim", "c", oneDevice) + uses("p", byName, "c", "") + `- {kind: Pod, name: others}`, want: map[string]string{"others": "a-0"}},
			{do: attach("c", "ready"), want: map[string]string{"p": "a-0"}},
		}},
		{"devices-never-bound", [][2]string{{"a", "{}"}}, []step{
			{apply: deviceClass("") + slice("s", `{name: d, bindingConditions: [ready], bindingFailureConditions: [broken]}`, "") +
				claimed("ResourceClaim", "c", oneDevice) + uses("p", byName, "c", ", schedulerName: hurried") + `- {kind: Pod, name: others}`,
				want: map[string]string{"p": "!device binding timeout", "others": "a-0"}},
		}},
		{"devices-filter-timeout", [][2]string{devices(1, "")}, []step{
			{apply: deviceClass("") + claimed("ResourceClaim", "c", oneDevice) + uses("p", byName, "c", ", schedulerName: impatient") + `- {kind: Pod, name: others}`,
				want: map[string]string{"p": "!timed out trying to allocate devices", "others": "a-0"}},
		}},
		// An expression that fails at run time ends the attempt; others go on.
		{"devices-bad-expression", [][2]string{devices(1, "")}, []step{
			{apply: deviceClass("") + claimed("ResourceClaim", "c", `{name: r, exactly: {deviceClassName: SCENARIO, selectors: [{cel: {expression: 'device.attributes["`+gpu+`"].nosuch == "x"'}}]}}`) +
				uses("p", byName, "c", "") + `- {kind: Pod, name: others}`, want: map[string]string{"p": "!no such key", "others": "a-0"}},
		}},
	}
}

// allocatedTo wants so many devices in a claim's allocation.
func allocatedTo(claim string, n int) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		return until(ctx, func() string {
			c, err := s.client.ResourceV1().ResourceClaims(s.scenario).Get(ctx, claim, metav1.GetOptions{})
			switch {
			case err != nil:
				return err.Error()
			case c.Status.Allocation == nil || len(c.Status.Allocation.Devices.Results) != n:
				return fmt.Sprintf("claim %s has allocation %+v, want %d devices", claim, c.Status.Allocation, n)
			}
			return ""
		})
	}
}

// attach does what a driver does when a device of an allocated claim has been made ready: it sets a condition.
func attach(claim, condition string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		return until(ctx, func() string {
			c, err := s.client.ResourceV1().ResourceClaims(s.scenario).Get(ctx, claim, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if c.Status.Allocation == nil {
				return "claim " + claim + " is not allocated"
			}
			for _, r := range c.Status.Allocation.Devices.Results {
				c.Status.Devices = append(c.Status.Devices, resourceapi.AllocatedDeviceStatus{Driver: r.Driver, Pool: r.Pool, Device: r.Device,
					Conditions: []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Done", LastTransitionTime: metav1.Now()}}})
			}
			if _, err := s.client.ResourceV1().ResourceClaims(s.scenario).UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}
