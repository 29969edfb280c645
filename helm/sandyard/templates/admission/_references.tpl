{{/*
The names of one kind of object that a spec points to, each checked against the rights of who creates it.

An expression may hold two authorizer checks and a policy about twenty-eight (a fixed cost each), so: one check whether
all objects of the kind may be read, which is what tenants have; else the distinct names one by one, up to `names`.
Arguments: kind, resource, list (CEL), names.
*/}}
{{- define "sandyard.referenceVariables" }}
    - name: {{ .resource }}0
      expression: >-
        {{ .list }}
    {{- range $i := until (int .names) }}
    - name: {{ $.resource }}{{ add1 $i }}
      expression: >-
        size(variables.{{ $.resource }}{{ $i }}) == 0 ? [] :
        variables.{{ $.resource }}{{ $i }}.filter(name, name != variables.{{ $.resource }}{{ $i }}[0])
    {{- end }}
    - name: {{ .resource }}All
      expression: >-
        size(variables.{{ .resource }}0) == 0
        || authorizer.group('').resource('{{ .resource }}').namespace(request.namespace).check('get').allowed()
{{- end }}
{{- define "sandyard.referenceValidations" }}
    {{- range $i := until (int .names) }}
    - expression: >-
        variables.{{ $.resource }}All || size(variables.{{ $.resource }}{{ $i }}) == 0
        || authorizer.group('').resource('{{ $.resource }}').namespace(request.namespace)
        .name(variables.{{ $.resource }}{{ $i }}[0]).check('get').allowed()
      messageExpression: >-
        request.userInfo.username + ' may not get the {{ $.kind }} ' + variables.{{ $.resource }}{{ $i }}[0]
        + ' that the spec points to'
      reason: Forbidden
    {{- end }}
    - expression: variables.{{ .resource }}All || size(variables.{{ .resource }}{{ .names }}) == 0
      message: >-
        who may get {{ .kind }}s only by name can point to {{ .names }} of them; ask for the right to get all
      reason: Forbidden
{{- end }}

{{/* CEL: the blobs that a spec points to may be read. */}}
{{- define "sandyard.blobCheck" -}}
authorizer.group('data.sandyard.dev').resource('blobs').namespace(request.namespace).check('get').allowed()
{{- end }}
