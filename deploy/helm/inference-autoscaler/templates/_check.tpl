{{/* Stops with a sentence at what cannot be meant. */}}
{{- define "autoscaler.check" -}}
{{- if not .Values.pools -}}
{{- fail "pools is empty: write one at least; the examples beside the chart and deploy/examples/reference.yaml show how" -}}
{{- end -}}
{{- include "autoscaler.check.names" . -}}
{{- include "autoscaler.check.config" . -}}
{{- include (printf "autoscaler.check.%s" .Values.topology) . -}}
{{- range $pool, $target := .Values.keda.scaledObjects -}}
{{- $section := get $.Values.pools $pool -}}
{{- if not $section -}}
{{- fail (printf "keda.scaledObjects.%s: there is no such pool" $pool) -}}
{{- end -}}
{{- if ne $section.platform.kind "keda" -}}
{{- fail (printf "keda.scaledObjects.%s: pools.%s.platform.kind is %s; set it to keda, or remove the object" $pool $pool $section.platform.kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Each pool has names of its own in Kubernetes, which takes fewer letters than the program. */}}
{{- define "autoscaler.check.names" -}}
{{- if not (regexMatch "^[a-z]" (include "autoscaler.fullname" .)) -}}
{{- fail (printf "the name of everything would be %s, and that of a Service begins with a letter: set fullnameOverride" (include "autoscaler.fullname" .)) -}}
{{- end -}}
{{- $taken := dict -}}
{{- if ne .Values.topology "standalone" -}}
{{- $_ := set $taken "controllers" "the chart" -}}
{{- end -}}
{{- if eq .Values.topology "sidecar" -}}
{{- $_ := set $taken "admin" "the chart" -}}
{{- end -}}
{{- range $pool, $section := .Values.pools -}}
{{- $word := include "autoscaler.word" $pool -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $word) -}}
{{- fail (printf "pools.%s: nothing in Kubernetes can be named so; give it a name with a letter or a digit" $pool) -}}
{{- end -}}
{{- range $name := eq $.Values.topology "sidecar" | ternary (list $word (printf "%s-admin" $word)) (list $word) -}}
{{- if hasKey $taken $name -}}
{{- fail (printf "pools.%s: in Kubernetes its objects would be named …-%s, as those of %s are; give the pool another name" $pool $name (get $taken $name)) -}}
{{- end -}}
{{- $_ := set $taken $name (printf "pools.%s" $pool) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What of the configuration the chart itself has to do with. */}}
{{- define "autoscaler.check.config" -}}
{{- range $key := list "listen" "admin" "history" "mode" "leadership" "pools" "drain" -}}
{{- if hasKey (default (dict) $.Values.config) $key -}}
{{- fail (printf "config.%s: the chart sets it; remove it here (there are the values pools, mode, drain, service and admin)" $key) -}}
{{- end -}}
{{- end -}}
{{- range $key := list "grpc" "keda" -}}
{{- if hasKey (default (dict) (get (default (dict) $.Values.config) $key)) "listen" -}}
{{- fail (printf "config.%s.listen: the chart sets it; remove it here (service.grpcPort and keda.port are the ports of the Services)" $key) -}}
{{- end -}}
{{- end -}}
{{- if include "autoscaler.certificate" (list . "admin_access") -}}
{{- fail "config.admin_access.certificate: the probes and the monitors of this chart ask the admin listener without TLS; remove it, and let admin.tokenSecret and networkPolicy keep others out" -}}
{{- end -}}
{{- if and .Values.keda.scaledObjects (include "autoscaler.certificate" (list . "keda")) -}}
{{- fail "config.keda.certificate: the ScaledObjects of this chart ask without TLS; remove it, or leave keda.scaledObjects empty and write your own" -}}
{{- end -}}
{{- range $label, $value := .Values.podLabels -}}
{{- if has $label (list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component") -}}
{{- fail (printf "podLabels.%s: the chart finds its pods by it; remove it (nameOverride changes the name)" $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "autoscaler.check.standalone" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if .Values.persistence.enabled -}}
{{- fail "replicas is above 1: each program needs a history of its own; set persistence.enabled to false, or replicas to 1" -}}
{{- end -}}
{{- if and (eq .Values.mode "act") (include "autoscaler.scales" .) -}}
{{- fail "replicas is above 1: several programs would scale the same pools; set topology to proxies, mode to recommend, or replicas to 1" -}}
{{- end -}}
{{- end -}}
{{- range $pool, $section := .Values.pools -}}
{{- if hasKey $section "demand" -}}
{{- fail (printf "pools.%s.demand: a program that is alone measures it itself; remove it, or set topology to sidecar or proxies" $pool) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "autoscaler.check.proxies" -}}
{{- include "autoscaler.check.controllers" . -}}
{{- end -}}

{{- define "autoscaler.check.sidecar" -}}
{{- include "autoscaler.check.controllers" . -}}
{{- range $pool, $section := .Values.pools -}}
{{- $namespace := default $.Release.Namespace $section.platform.namespace -}}
{{- if ne $namespace $.Release.Namespace -}}
{{- fail (printf "pools.%s.platform.namespace: sidecars are in the pods of %s, and their configuration and Services in %s; install the release there, or remove it" $pool $namespace $.Release.Namespace) -}}
{{- end -}}
{{- if not (hasKey $.Values.sidecars.servers $pool) -}}
{{- fail (printf "sidecars.servers.%s: missing; name the labels and the container of its model servers: {selector: {app: chat}, container: server}" $pool) -}}
{{- end -}}
{{- end -}}
{{- range $pool, $server := .Values.sidecars.servers -}}
{{- if not (hasKey $.Values.pools $pool) -}}
{{- fail (printf "sidecars.servers.%s: there is no such pool" $pool) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Controllers, and who measures for them. */}}
{{- define "autoscaler.check.controllers" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail (printf "replicas is above 1, and topology is %s: set controllers.replicas or proxies.replicas" .Values.topology) -}}
{{- end -}}
{{- if .Values.persistence.existingClaim -}}
{{- fail (printf "persistence.existingClaim is set, and topology is %s: each controller has a history of its own; remove it" .Values.topology) -}}
{{- end -}}
{{- range $pool, $section := .Values.pools -}}
{{- if $section.signals -}}
{{- fail (printf "pools.%s.signals: only a program that is alone reads them; remove them, or set topology to standalone" $pool) -}}
{{- end -}}
{{- if $section.substitute -}}
{{- fail (printf "pools.%s.substitute: only a program that is alone has queues of several pools; remove it, or set topology to standalone" $pool) -}}
{{- end -}}
{{- end -}}
{{- end -}}
