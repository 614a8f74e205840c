// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// deprecated are fields of an endpoint that the operator will remove.
var deprecated = []string{"bearerTokenFile", "bearerTokenSecret", "targetPort", "basicAuth"}

// strictly reads an object of the operator and rejects fields that it does not know.
func strictly(t *testing.T, all objects, key string, into any) {
	t.Helper()
	raw, err := yaml.Marshal(all[key])
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	if err != nil || all[key] == nil {
		t.Fatalf("%s: %v", key, err)
	}
	unknown, err := json.UnmarshalStrict(raw, into)
	if err != nil || len(unknown) > 0 {
		t.Errorf("%s: %v %v", key, err, unknown)
	}
}

// TestOperatorReadsItsObjects uses the types of the Prometheus operator and rejects unknown and deprecated fields. The monitor
// finds the Service and its port, and a token that may read the metrics. It catches a misspelt field, which the API server
// drops without a message, and a changed label of the Service (nothing would be scraped, and only KumikiDown would fire).
func TestOperatorReadsItsObjects(t *testing.T) {
	all := kustomized(t, "canary", "monitoring")
	var monitor monitoringv1.ServiceMonitor
	strictly(t, all, "ServiceMonitor/kube-system/kumiki", &monitor)
	var rules monitoringv1.PrometheusRule
	strictly(t, all, "PrometheusRule/kube-system/kumiki", &rules)
	if len(rules.Spec.Groups) != 1 || len(rules.Spec.Groups[0].Rules) < 12 || rules.Spec.Groups[0].Rules[0].For == nil {
		t.Errorf("the operator reads %+v", rules.Spec)
	}
	service := into[corev1.Service](t, all, "Service/kube-system/kumiki")
	if len(monitor.Spec.Endpoints) != 1 || len(service.Spec.Ports) != 1 {
		t.Fatalf("the operator reads %+v about %+v", monitor.Spec, service)
	}
	e := monitor.Spec.Endpoints[0]
	if e.Port != service.Spec.Ports[0].Name || e.Scheme == nil || !strings.EqualFold(string(*e.Scheme), "https") ||
		e.TLSConfig == nil || !*e.TLSConfig.InsecureSkipVerify {
		t.Errorf("the endpoint is %+v, the Service has the ports %+v", e, service.Spec.Ports)
	}
	for k, v := range monitor.Spec.Selector.MatchLabels {
		if service.Labels[k] != v || monitor.Namespace != service.Namespace {
			t.Errorf("the monitor in %s selects %s=%s, the Service in %s has %v", monitor.Namespace, k, v, service.Namespace, service.Labels)
		}
	}
	for _, field := range deprecated {
		if strings.Contains(asText(t, all["ServiceMonitor/kube-system/kumiki"]), field) {
			t.Errorf("the monitor uses the deprecated field %s", field)
		}
	}
	secret := into[corev1.Secret](t, all, "Secret/kube-system/"+e.Authorization.Credentials.Name)
	account := secret.Annotations[corev1.ServiceAccountNameKey]
	reader := into[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding/kumiki:metrics")
	if secret.Type != corev1.SecretTypeServiceAccountToken || e.Authorization.Credentials.Key != corev1.ServiceAccountTokenKey ||
		!slices.Equal(reader.Subjects, []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: "kube-system"}}) {
		t.Errorf("the monitor uses %+v of %+v, and the role is bound to %+v", e.Authorization, secret, reader.Subjects)
	}
}

// TestMonitorVerifiesACertificate: the one of cert-manager, or that of a CA given by values.
func TestMonitorVerifiesACertificate(t *testing.T) {
	for values, want := range map[string][2]string{ // values -> Secret or ConfigMap with the CA, name in the certificate
		"tls: {certManager: {enabled: true, issuer: {name: a}}}":                                              {"kumiki-tls/ca.crt", "kumiki.kube-system.svc"},
		"tls: {certManager: {enabled: true, issuer: {name: a}}, secretName: mine}":                            {"mine/ca.crt", "kumiki.kube-system.svc"},
		"{tls: {secretName: mine}, monitoring: {ca: {secret: {name: ca, key: b}}}}":                           {"ca/b", "kumiki.kube-system.svc"},
		"{tls: {secretName: mine}, monitoring: {ca: {configMap: {name: ca, key: c}}, serverName: k.example}}": {"ca/c", "k.example"},
	} {
		all, _ := rendered(t, "kumiki", with(t, values, "monitoring: {enabled: true}"))
		var monitor monitoringv1.ServiceMonitor
		strictly(t, all, "ServiceMonitor/kube-system/kumiki", &monitor)
		tls, ca := monitor.Spec.Endpoints[0].TLSConfig, ""
		if s := tls.CA.Secret; s != nil {
			ca = s.Name + "/" + s.Key
		} else if c := tls.CA.ConfigMap; c != nil {
			ca = c.Name + "/" + c.Key
		}
		if ca != want[0] || tls.ServerName == nil || *tls.ServerName != want[1] || tls.InsecureSkipVerify != nil {
			t.Errorf("%s: the monitor has %+v", values, tls)
		}
	}
}
