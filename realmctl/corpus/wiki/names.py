"""Names with a meaning in wikitext: tags, and titles of sections without prose.

Source of the tags: mediawiki.org/wiki/Help:Formatting. The section titles are those that end most articles of Wikipedia in English, and in ko,
ja, zh, de, fr, es, ru, ar and he.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a list that stands in lines."""
    return frozenset(text.split())


ELEMENTS_WITHOUT_PROSE = words("""
    ref references math chem ce gallery imagemap timeline hiero score graph mapframe maplink source
    syntaxhighlight pre templatedata templatestyles style script inputbox indicator categorytree rt
    includeonly
""")
"""Elements whose content is not prose. <nowiki> is handled separately."""
BLOCK_TAGS = words("""
    p div ul ol dl dd dt blockquote center poem table tr td th caption hr h1 h2 h3 h4 h5 h6
""")
"""Tags that start a new line. INLINE_TAGS are removed without a trace."""
INLINE_TAGS = words("""
    b i u s em strong small big sub sup span font tt code var samp kbd cite abbr dfn del ins strike
    q br wbr nowiki ref references section noinclude onlyinclude includeonly bdi bdo mark ruby rb rp
    data time nobr gallery math source pre
""")
SECTIONS_WITHOUT_PROSE = frozenset(
    """\
references
references and notes
references and sources
references and further reading
notes
notes and references
notes and citations
footnotes
footnotes and references
citations
citations and references
general references
sources
sources and references
sources and further reading
works cited
literature
bibliography
bibliography and further reading
further reading
see also
external link
external links
gallery
image gallery
각주
주석
내용주
참조주
각주 및 참고 문헌
참고 문헌
참고문헌
참고 자료
출처
같이 보기
함께 보기
외부 링크
바깥 고리
갤러리
더 읽어보기
脚注
注釈
注
出典
注釈・出典
脚注・出典
参考文献
参考資料
関連文献
関連書籍
関連項目
関連リンク
外部リンク
ギャラリー
參考文獻
参考资料
參考資料
参考来源
參考來源
资料来源
資料來源
参考
參考
来源
來源
注释
註釋
注釋
脚注与参考文献
腳註
备注
備註
参见
參見
参看
參看
另见
另見
相关条目
相關條目
延伸阅读
延伸閱讀
扩展阅读
擴展閱讀
外部链接
外部鏈接
外部連結
图集
圖集
einzelnachweise
einzelnachweise und anmerkungen
anmerkungen und einzelnachweise
anmerkungen
fußnoten
belege
nachweise
quellen
quellen und literatur
literatur
literatur und quellen
weiterführende literatur
weblinks
siehe auch
galerie
bildergalerie
notes et références
références
voir aussi
articles connexes
article connexe
liens externes
lien externe
bibliographie
pour approfondir
referencias
notas
notas y referencias
referencias y notas
bibliografía
bibliografía adicional
lecturas adicionales
véase también
enlaces externos
fuentes
galería
примечания
сноски
комментарии
источники
литература
ссылки
см. также
галерея
مراجع
المراجع
المصادر
مصادر
هوامش
الهوامش
ملاحظات
انظر أيضا
انظر أيضًا
انظر أيضاً
طالع أيضا
اقرأ أيضا
قراءات إضافية
وصلات خارجية
روابط خارجية
معرض صور
הערות שוליים
ביאורים
קישורים חיצוניים
לקריאה נוספת
ראו גם
מקורות
גלריה
""".splitlines()
)
"""Titles of sections without prose."""
