// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// TestValuesReachTheObjects: a release of another name shares no object with the first, and what is set is there.
func TestValuesReachTheObjects(t *testing.T) {
	all, r := rendered(t, "other", `
fullnameOverride: other
image: {digest: "sha256:`+strings.Repeat("0", 64)+`"}
replicas: 2
extraArgs: ["--v=4", "--record=/data/record"]
extraVolumes: [{name: data, emptyDir: {sizeLimit: 1Gi}}]
extraVolumeMounts: [{name: data, mountPath: /data}]
env: [{name: GOMEMLIMIT, value: 900MiB}]
flowControl: {enabled: false}
profiles: [{schedulerName: batch, percentageOfNodesToScore: 50}]
configuration: {podMaxBackoffSeconds: 20}
clusterSize: 150k
resources: {limits: {memory: 4Gi}, requests: {cpu: "1"}}
spread: [{topologyKey: topology.kubernetes.io/zone, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]
podAnnotations: {example.org/pod: p}
podLabels: {pool: control}
deploymentAnnotations: {example.org/deployment: d}
serviceAccount: {annotations: {example.org/account: a}}
service: {annotations: {example.org/service: s}}
networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {name: metrics}}}], egress: [{ports: [{port: 6443}]}]}
tls: {certManager: {enabled: true, issuer: {name: cluster, kind: ClusterIssuer}}}
monitoring: {enabled: true, dashboard: false, labels: {release: prometheus}}
`)
	for name := range all {
		if strings.Contains(name, "/kumiki") || strings.HasPrefix(name, "FlowSchema") {
			t.Errorf("%s is there", name)
		}
	}
	for object, want := range map[string][]string{
		"Deployment/kube-system/other": {
			image + "@sha256:0000", "replicas: 2", "- --v=4", "- --record=/data/record", "sizeLimit: 1Gi", "mountPath: /data",
			"- name: GOMEMLIMIT\n          value: 900MiB", "memory: 4Gi", "memory: 448Mi", `cpu: "1"`,
			"maxSkew: 2\n        topologyKey: topology.kubernetes.io/zone\n        whenUnsatisfiable: DoNotSchedule",
			"example.org/pod: p", "pool: control", "example.org/deployment: d",
			"--tls-cert-file=/etc/kumiki-tls/tls.crt", "secretName: other-tls", "fsGroup: 65532",
		},
		"ServiceAccount/kube-system/other":         {"example.org/account: a"},
		"Service/kube-system/other":                {"example.org/service: s"},
		"Role/kube-system/other:lease":             {"- other"},
		"NetworkPolicy/kube-system/other":          {"name: metrics", "port: 6443", "- Egress", "port: https"},
		"Certificate/kube-system/other":            {"kind: ClusterIssuer", "name: cluster", "- other.kube-system.svc\n", "secretName: other-tls"},
		"ServiceMonitor/kube-system/other":         {"release: prometheus", "serverName: other.kube-system.svc", "key: ca.crt", "name: other-tls", "name: other-metrics"},
		"PrometheusRule/kube-system/other":         {"release: prometheus", "KumikiDown"},
		"ServiceAccount/kube-system/other-metrics": {"automountServiceAccountToken: false"},
	} {
		text := asText(t, all[object])
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in %s:\n%s", w, object, text)
			}
		}
	}
	if monitor := asText(t, all["ServiceMonitor/kube-system/other"]); strings.Contains(monitor, "insecureSkipVerify") {
		t.Errorf("the certificate is not verified:\n%s", monitor)
	}
	c := configured(t, all)
	if c.Profiles[0].SchedulerName != "batch" || c.LeaderElection.Name != "other" {
		t.Errorf("the configuration is %+v", c)
	}
	if len(r.Hooks) != 1 || !strings.Contains(r.Hooks[0].Manifest, "schedulerName: batch") {
		t.Errorf("the test of the release is %+v", r.Hooks)
	}
}

// TestTagIsThatOfTheApplication, unless one is set.
func TestTagIsThatOfTheApplication(t *testing.T) {
	all, r := rendered(t, "kumiki", `image: {tag: ""}`)
	text := asText(t, all["Deployment/kube-system/kumiki"])
	if want := "image: " + repository + ":" + r.Chart.AppVersion() + "\n"; !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

// TestNotesNameWhatWasSet: the lease, the profiles and the commands. It catches notes about defaults.
func TestNotesNameWhatWasSet(t *testing.T) {
	for values, want := range map[string][]string{
		"mode: canary":  {"get lease other-kumiki", "schedulerName is one of its profiles: kumiki.", "helm test other"},
		"mode: replace": {"get lease kube-scheduler", "kumiki is on standby"},
		"mode: shadow":  {"exec deployment/other-kumiki -- /kumiki shadow show /report/report.json"},
		"{leaseName: mine, profiles: [{schedulerName: batch}, {schedulerName: web}]}": {"--scheduler-lease kube-system/mine", "profiles: batch web."},
	} {
		r, err := renderChart(t, "other", values)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(r.Info.Notes, w) {
				t.Errorf("%s: no %q in\n%s", values, w, r.Info.Notes)
			}
		}
	}
}

// TestLint runs `helm lint --strict`: templates must not read values that do not exist.
func TestLint(t *testing.T) {
	for _, values := range []string{"mode: canary", "mode: shadow", "{mode: replace, monitoring: {enabled: true}, tls: {secretName: s}, networkPolicy: {enabled: true}}"} {
		_, given := loadChart(t, values)
		for _, m := range lint.All(chartDir, given, namespace, true).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", values, m)
			}
		}
	}
}

// TestBadValuesAreRejected: values that do not exist or that contradict each other, before any object is created, with a
// message that names the value, and says what to set if two contradict each other.
func TestBadValuesAreRejected(t *testing.T) {
	for values, want := range map[string]string{
		// By values.schema.json.
		"mode: beside":                                        "at '/mode': value must be one of 'canary', 'replace', 'shadow'",
		"replicas: 0":                                         "at '/replicas': minimum: got 0, want 1",
		"replica: 3":                                          "additional properties 'replica' not allowed",
		"image: {tag: 1}":                                     "at '/image/tag': got number, want string",
		"image: {tag: a b}":                                   "at '/image/tag'",
		"image: {digest: abc}":                                "at '/image/digest'",
		"image: {pullPolicy: always}":                         "at '/image/pullPolicy'",
		"maxUnavailable: 0":                                   "at '/maxUnavailable'",
		"profiles: [{}]":                                      "missing property 'schedulerName'",
		"configuration: {leaderElection: {}}":                 "at '/configuration/leaderElection'",
		"configuration: {profiles: []}":                       "at '/configuration/profiles'",
		"extraArgs: [v=4]":                                    "at '/extraArgs/0'",
		"env: [{value: x}]":                                   "missing property 'name'",
		"extraVolumes: [{name: a}]":                           "at '/extraVolumes/0'",
		"extraVolumeMounts: [{name: a}]":                      "missing property 'mountPath'",
		"clusterSize: 10k":                                    "at '/clusterSize': value must be one of '5k', '50k', '150k'",
		"resources: {cpu: 1}":                                 "additional properties 'cpu' not allowed",
		"spread: [{topologyKey: zone}]":                       "missing properties",
		"podLabels: {a: 1}":                                   "at '/podLabels/a'",
		"flowControl: {matchingPrecedence: 0}":                "at '/flowControl/matchingPrecedence'",
		"gangs: {sigs: Auto}":                                 "at '/gangs/sigs': got string, want boolean",
		"gangs: {kueue: true}":                                "additional properties 'kueue' not allowed",
		"monitoring: {enable: true}":                          "additional properties 'enable' not allowed",
		"monitoring: {interval: often}":                       "at '/monitoring/interval'",
		"monitoring: {ca: {secret: {name: a}}}":               "missing property 'key'",
		"roles: {viewers: [{kind: Team, name: a}]}":           "at '/roles/viewers/0/kind'",
		"roles: {viewers: [{kind: ServiceAccount, name: a}]}": "missing property 'namespace'",
		"networkPolicy: {from: {}}":                           "at '/networkPolicy/from'",
		"tls: {certmanager: {}}":                              "additional properties 'certmanager' not allowed",
		"test: {deadlineSeconds: 0}":                          "at '/test/deadlineSeconds'",
		"fullnameOverride: Kumiki":                            "at '/fullnameOverride'",

		// By the templates: contradictions.
		`image: {repository: ""}`:                                 "image.repository is required",
		`image: {repository: "registry.example/kumiki:v1"}`:       "set its tag as image.tag",
		`image: {repository: "registry.example/kumiki@sha256:0"}`: "its digest as image.digest",
		"profiles: [{schedulerName: default-scheduler}]":          "set mode to replace",
		"profiles: [{schedulerName: a}, {schedulerName: a}]":      "two profiles have the same schedulerName",
		"leaseName: kube-scheduler":                               "kumiki would wait until kube-scheduler ends",
		"{mode: replace, profiles: [{schedulerName: a}]}":         "mode replace without profile default-scheduler",
		"{mode: shadow, replicas: 3}":                             "mode shadow with replicas 3",
		"{mode: shadow, leaseName: a}":                            "a shadow has no lease",
		"{mode: shadow, profiles: [{schedulerName: a}]}":          `mode shadow follows "default-scheduler"`,
		"maxUnavailable: 3":                                       "maxUnavailable 3 with 3 replicas",
		"{gangs: {sigs: true}, profiles: [{schedulerName: a, pluginConfig: [{name: Kumiki, args: {gangs: {sigs: Off}}}]}]}": `pluginConfig Kumiki of profile "a" sets gangs too`,
		"extraArgs: [--config=/a]":                      "the chart sets --config; set instead: configuration and profiles",
		"extraArgs: [--leader-elect=false]":             "the chart sets --leader-elect; set instead: mode",
		"extraArgs: [--shadow=a]":                       "set instead: mode and shadow",
		"extraArgs: [--record=/data/record]":            "the root file system is read-only",
		"extraVolumes: [{name: config, emptyDir: {}}]":  `the chart has a volume "config"`,
		"extraVolumeMounts: [{name: a, mountPath: /a}]": `no volume in extraVolumes is called "a"`,
		"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /etc/kumiki/}]}": "the chart mounts its own files at /etc/kumiki",
		"gangs: {pfnetPrefix: example.org/gang}":                   "no effect while gangs.pfnet is false",
		"serviceAccount: {create: false}":                          "set serviceAccount.name",
		"tls: {certManager: {enabled: true}}":                      "set tls.certManager.issuer.name",
		"monitoring: {ca: {secret: {name: a, key: b}}}":            "set tls.secretName or tls.certManager.enabled too",
		"networkPolicy: {from: [{podSelector: {}}]}":               "no effect while networkPolicy.enabled is false",
		"roles: {create: false, viewers: [{kind: User, name: a}]}": "no effect while roles.create is false",
	} {
		if _, err := renderChart(t, "kumiki", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", values, err, want)
		}
	}
}
