// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// An extender over HTTPS is verified where a certificate authority is configured, and only there. Faults: the authority
// that is not read; a server that is not verified although it could be; no client certificate.
func TestHTTPS(t *testing.T) {
	f := newFixture(t)
	handler := f.handler(func(string, []byte) any { return result{NodeNames: names("a")} })
	quiet := log.New(io.Discard, "", 0)
	plain := httptest.NewUnstartedServer(handler)
	plain.Config.ErrorLog = quiet
	plain.StartTLS()
	t.Cleanup(plain.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: plain.Certificate().Raw})
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := clientCertificate(t)
	mutual := httptest.NewUnstartedServer(handler)
	mutual.Config.ErrorLog = quiet
	mutual.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	mutual.StartTLS()
	t.Cleanup(mutual.Close)
	type settings = configv1.ExtenderTLSConfig
	for _, scenario := range []struct {
		name   string
		server *httptest.Server
		https  bool
		tls    *settings
		want   string // part of the error
	}{
		{"no settings: not verified", plain, true, nil, ""},
		{"the authority", plain, true, &settings{CAData: ca}, ""},
		{"the authority in a file", plain, true, &settings{CAFile: caFile}, ""},
		{"another name", plain, true, &settings{CAData: ca, ServerName: "example.com"}, ""},
		{"a name that the server does not have", plain, true, &settings{CAData: ca, ServerName: "other.example.org"},
			"not other.example.org"},
		{"another authority", plain, true, &settings{CAData: cert}, "certificate signed by unknown authority"},
		{"not to be verified", plain, true, &settings{Insecure: true}, ""},
		{"HTTPS not enabled, no settings", plain, false, nil, "certificate signed by unknown authority"},
		{"HTTPS not enabled, the authority", plain, false, &settings{CAData: ca}, ""},
		{"no client certificate", mutual, true, nil, "certificate required"},
		{"a client certificate", mutual, true, &settings{CertData: cert, KeyData: key}, ""},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			config := filters(scenario.server)
			config.EnableHTTPS, config.TLSConfig = scenario.https, scenario.tls
			_, err := f.with(config).Filter(f.pod("p"), []string{"a"})
			if scenario.want == "" && err != nil || scenario.want != "" &&
				(err == nil || !strings.Contains(err.Error(), scenario.want)) {
				t.Errorf("error %v, want %q", err, scenario.want)
			}
		})
	}
	for _, bad := range []settings{
		{CAFile: filepath.Join(t.TempDir(), "gone.pem")},
		{CAData: ca, Insecure: true},
		{CertData: []byte("none"), KeyData: key},
	} {
		config := configv1.Extender{URLPrefix: "https://extender", EnableHTTPS: true, TLSConfig: &bad}
		if _, err := New(context.Background(), []configv1.Extender{config}, f, nil); err == nil ||
			!strings.Contains(err.Error(), `extender "https://extender": `) {
			t.Errorf("%+v: error %v", bad, err)
		}
	}
}

// The answer of a server that speaks no TLS to a client that does.
func TestHTTPSToPlainServer(t *testing.T) {
	f := newFixture(t)
	s := f.server(func(string, []byte) any { return http.StatusOK })
	config := filters(s)
	config.URLPrefix = strings.Replace(s.URL, "http:", "https:", 1)
	config.EnableHTTPS = true
	if _, err := f.with(config).Filter(f.pod("p"), []string{"a"}); err == nil ||
		!strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		t.Errorf("error %v", err)
	}
}
