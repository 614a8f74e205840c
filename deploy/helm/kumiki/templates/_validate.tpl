{{- /*
What values.schema.json cannot express: values that contradict each other. Each message names the values and says what to set.
*/ -}}
{{- define "kumiki.validate" -}}
{{- $v := .Values -}}
{{- if not $v.image.repository -}}
{{- fail "image.repository is required: name the image that you pushed, for example --set image.repository=registry.example/kumiki" -}}
{{- end -}}
{{- if regexMatch ":[^/]*$|@" $v.image.repository -}}
{{- fail (printf "image.repository is %q: set its tag as image.tag and its digest as image.digest" $v.image.repository) -}}
{{- end -}}
{{- include "kumiki.validateMode" . -}}
{{- include "kumiki.validateGangs" . -}}
{{- include "kumiki.validateFlags" . -}}
{{- include "kumiki.validateVolumes" . -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- fail "serviceAccount.create is false: set serviceAccount.name to the account that exists" -}}
{{- end -}}
{{- if and $v.tls.certManager.enabled (not $v.tls.certManager.issuer.name) -}}
{{- fail "tls.certManager.enabled is true: set tls.certManager.issuer.name to the issuer of the certificate" -}}
{{- end -}}
{{- if and $v.monitoring.ca (not (include "kumiki.tlsSecret" .)) -}}
{{- fail "monitoring.ca verifies a certificate that you provide: set tls.secretName or tls.certManager.enabled too" -}}
{{- end -}}
{{- if and (not $v.networkPolicy.enabled) (or $v.networkPolicy.from $v.networkPolicy.egress) -}}
{{- fail "networkPolicy.from and networkPolicy.egress have no effect while networkPolicy.enabled is false" -}}
{{- end -}}
{{- if and (not $v.roles.create) (or $v.roles.viewers $v.roles.operators $v.roles.incidentReaders) -}}
{{- fail "roles.viewers, roles.operators and roles.incidentReaders have no effect while roles.create is false" -}}
{{- end -}}
{{- end }}

{{- define "kumiki.validateMode" -}}
{{- $v := .Values -}}
{{- $names := list -}}
{{- range $v.profiles }}{{ $names = append $names .schedulerName }}{{ end -}}
{{- if ne (len $names) (len (uniq $names)) -}}
{{- fail "profiles: two profiles have the same schedulerName" -}}
{{- end -}}
{{- if eq $v.mode "canary" -}}
{{- if has "default-scheduler" $names -}}
{{- fail "mode canary with profile default-scheduler: kube-scheduler schedules the same pods; set mode to replace" -}}
{{- end -}}
{{- if eq $v.leaseName "kube-scheduler" -}}
{{- fail "mode canary with leaseName kube-scheduler: kumiki would wait until kube-scheduler ends; set mode to replace, or another leaseName" -}}
{{- end -}}
{{- end -}}
{{- if and (eq $v.mode "replace") $names (not (has "default-scheduler" $names)) -}}
{{- fail "mode replace without profile default-scheduler: no scheduler would place the pods that name none; add the profile, or set mode to canary" -}}
{{- end -}}
{{- if eq $v.mode "shadow" -}}
{{- if gt (int (default 1 $v.replicas)) 1 -}}
{{- fail (printf "mode shadow with replicas %d: a shadow is one pod; leave replicas out" (int $v.replicas)) -}}
{{- end -}}
{{- if $v.leaseName -}}
{{- fail "mode shadow with leaseName: a shadow has no lease; leave leaseName out" -}}
{{- end -}}
{{- if and $names (not (has $v.shadow.follow $names)) -}}
{{- fail (printf "mode shadow follows %q, and no profile has that schedulerName: its profile evaluates the binds" $v.shadow.follow) -}}
{{- end -}}
{{- else if and (kindIs "float64" $v.maxUnavailable | or (kindIs "int64" $v.maxUnavailable) | or (kindIs "int" $v.maxUnavailable))
  (gt (include "kumiki.replicas" . | int) 1) (ge (int $v.maxUnavailable) (include "kumiki.replicas" . | int)) -}}
{{- fail (printf "maxUnavailable %d with %s replicas: all replicas may be down at once; set a smaller number"
  (int $v.maxUnavailable) (include "kumiki.replicas" .)) -}}
{{- end -}}
{{- end }}

{{- define "kumiki.validateGangs" -}}
{{- if and .Values.gangs.pfnetPrefix (not .Values.gangs.pfnet) -}}
{{- fail "gangs.pfnetPrefix has no effect while gangs.pfnet is false" -}}
{{- end -}}
{{- if include "kumiki.gangs" . | fromYaml -}}
{{- range $profile := .Values.profiles -}}
{{- range $profile.pluginConfig -}}
{{- if and (eq .name "Kumiki") (hasKey (.args | default dict) "gangs") -}}
{{- fail (printf "gangs is set, and the pluginConfig Kumiki of profile %q sets gangs too: set it in one of the two" $profile.schedulerName) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kumiki.validateFlags" -}}
{{- $v := .Values -}}
{{- $reserved := dict "config" "configuration and profiles" "secure-port" "nothing: the port is 10259" "shadow" "mode and shadow"
  "shadow-report" "nothing: the report is /report/report.json" "leader-elect" "mode" "leader-elect-resource-name" "leaseName"
  "leader-elect-resource-namespace" "nothing: the lease is in kube-system" "tls-cert-file" "tls" "tls-private-key-file" "tls" -}}
{{- range $v.extraArgs -}}
{{- $flag := regexReplaceAll "=.*" . "" | trimPrefix "--" -}}
{{- if hasKey $reserved $flag -}}
{{- fail (printf "extraArgs: the chart sets --%s; set instead: %s" $flag (index $reserved $flag)) -}}
{{- end -}}
{{- if eq $flag "record" -}}
{{- $file := trimPrefix "--record=" . -}}
{{- $written := dict "to" false -}}
{{- range $v.extraVolumeMounts -}}
{{- if and (hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) $file) (not .readOnly) }}{{ $_ := set $written "to" true }}{{ end -}}
{{- end -}}
{{- if not $written.to -}}
{{- fail (printf "extraArgs: --record writes %s, and the root file system is read-only: mount a volume there (extraVolumes, extraVolumeMounts)" $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kumiki.validateVolumes" -}}
{{- $volumes := list -}}
{{- range .Values.extraVolumes -}}
{{- if has .name (list "config" "tls" "report") -}}
{{- fail (printf "extraVolumes: the chart has a volume %q; choose another name" .name) -}}
{{- end -}}
{{- $volumes = append $volumes .name -}}
{{- end -}}
{{- range .Values.extraVolumeMounts -}}
{{- if not (has .name $volumes) -}}
{{- fail (printf "extraVolumeMounts: no volume in extraVolumes is called %q" .name) -}}
{{- end -}}
{{- if has (trimSuffix "/" .mountPath) (list "/etc/kumiki" "/etc/kumiki-tls" "/report") -}}
{{- fail (printf "extraVolumeMounts: the chart mounts its own files at %s; choose another path" .mountPath) -}}
{{- end -}}
{{- end -}}
{{- end }}
